"""`conformance app FRAMEWORK` and `conformance client`, as sdk/conformance/README.md describes them.

`conformance asyncio client` is the client for asyncio.
"""

from __future__ import annotations

import sys

if sys.argv[1:] == ["client"]:
    from .client import run

    run()
elif sys.argv[1:] == ["asyncio", "client"]:
    from .client import run_async

    run_async()
elif sys.argv[1:2] == ["app"] and len(sys.argv) == 3:
    from .serve import serve

    serve(sys.argv[2])
else:
    sys.exit("usage: python -m conformance [asyncio] client | app fastapi|starlette|flask|django|django_asgi")
