"""Tollgate: ask a rate limiter whether a request may pass.

>>> from tollgate import Client
>>> client = Client()  # TOLLGATE_URL and TOLLGATE_DATA_TOKEN
>>> client.check(api_key="abc", endpoint="GET /export/users").allowed
True
"""

from .aio import AsyncClient, AsyncSlot
from .client import Client
from .decision import Answer, Decision
from .errors import InvalidPath, NotSent, RateLimited, Refused, TollgateError, Unavailable
from .limit import Limit
from .request import RequestFields
from .settings import Settings
from .slots import Slot

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncSlot",
    "Client",
    "Decision",
    "InvalidPath",
    "Limit",
    "NotSent",
    "RateLimited",
    "Refused",
    "RequestFields",
    "Settings",
    "Slot",
    "TollgateError",
    "Unavailable",
]
