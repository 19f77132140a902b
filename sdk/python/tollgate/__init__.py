"""Tollgate: ask a rate limiter whether a request may pass.

>>> from tollgate import Client
>>> client = Client()  # TOLLGATE_URL and TOLLGATE_DATA_TOKEN
>>> client.check(api_key="abc", endpoint="GET /export/users").allowed
True
"""

from .aio import AsyncClient, AsyncSlot
from .client import Client
from .decision import Answer, Decision
from .decorator import limited
from .errors import InvalidPath, NotSent, RateLimited, Refused, TollgateError, Unavailable
from .incoming import Incoming
from .limit import Limit
from .pacing import Pacer
from .request import RequestFields
from .retry import Retry, Throttled
from .settings import Settings
from .slots import Slot

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncSlot",
    "Client",
    "Decision",
    "Incoming",
    "InvalidPath",
    "Limit",
    "NotSent",
    "Pacer",
    "RateLimited",
    "Refused",
    "RequestFields",
    "Retry",
    "Settings",
    "Slot",
    "Throttled",
    "TollgateError",
    "Unavailable",
    "limited",
]
