"""Prints a bearer token of the third-party implementation, like a team's own command.

    python3 bearer.py URL [AUTHORITY CERTIFICATE KEY]
"""

import ssl
import sys
import urllib.request

url, *keys = sys.argv[1:]
context = None
if keys:
    context = ssl.create_default_context(cafile=keys[0])
    context.load_cert_chain(*keys[1:])
print(urllib.request.urlopen(url, context=context).read().decode())
