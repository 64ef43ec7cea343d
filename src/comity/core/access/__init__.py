"""Who may do what: the claims of service and user tokens, the rules they must pass, scopes, roles and rights."""

from comity.core.access.claims import Claims as Claims
from comity.core.access.claims import Kind as Kind
from comity.core.access.claims import Left as Left
from comity.core.access.claims import Standing as Standing
from comity.core.access.principal import Principal as Principal
from comity.core.access.rights import RIGHTS_OF as RIGHTS_OF
from comity.core.access.rights import Right as Right
from comity.core.access.rights import Role as Role
from comity.core.access.scope import Scope as Scope
