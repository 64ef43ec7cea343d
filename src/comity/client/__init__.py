"""A client of a served node, with the same call names as `Node`: `AsyncClient`, and `Client` for code that cannot await."""

from comity.client.client import AsyncClient as AsyncClient
from comity.client.client import RemoteCall as RemoteCall
from comity.client.sync import Client as Client
