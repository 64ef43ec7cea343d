"""Keys and tokens of the HTTP doors: Ed25519 keys in a folder of their own, tokens signed and verified with them."""

from comity.engines.keys.ring import KeyRing as KeyRing
from comity.engines.keys.ring import keys_folder as keys_folder
from comity.engines.keys.tokens import Tokens as Tokens
from comity.engines.keys.used import UsedTokens as UsedTokens
