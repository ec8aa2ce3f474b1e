"""Who may do what in a root; deny is the answer to everything not granted.

SecurityManager(files, manifest_author, current_actor)
    check_permission, assert_permission, read_user_acl, write_user_acl, write_global_acl; check (blocking);
    bound_to(actor) for another who asks
AclFile, AclEntry, Action; ``rules`` for the decision itself
"""

from .rules import AclEntry, AclFile, Action
from .service import SecurityManager

__all__ = ["AclEntry", "AclFile", "Action", "SecurityManager"]
