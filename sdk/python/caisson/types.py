"""Written by scripts/sdk-types from /openapi.json: the objects of the HTTP interface.  Do not edit."""

from ._types_runs import *
from ._types_sandboxes import *
from ._types_kept import *
from ._types_checks import *
