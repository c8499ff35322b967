"""`python -m tests.chaos > reports/notes/chaos.md`"""

import sys

from tests.chaos.table import main

sys.exit(main())
