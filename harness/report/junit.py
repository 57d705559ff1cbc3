"""JUnit files of shards and hardware, merged into one."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from junitparser import JUnitXml, JUnitXmlError, TestSuite

from harness.errors import ResultsError
from harness.files import write_atomically


def merge(sources: Sequence[Path], target: Path) -> JUnitXml:
    """Puts the suites of all files into one file; each keeps its name, or gets that of its file.

    Args:
        sources: JUnit files; what can't be read is told when the others are merged and written.
        target: file to write.

    Raises:
        ResultsError: names the files that can't be read; those that can are written all the same. Or nothing could be
            written.
    """
    merged: Any = JUnitXml()
    problems = []
    stems = Counter(source.stem for source in sources)
    names = {s: s.stem if stems[s.stem] == 1 else f"{s.resolve().parent.name}/{s.stem}" for s in sources}
    for source in sources:
        try:
            found: Any = JUnitXml.fromfile(str(source))
        except OSError as error:
            problems.append(f"{source.name}: {error.strerror}")
            continue
        except (JUnitXmlError, SyntaxError, ValueError) as error:
            problems.append(f"{source.name} is no whole JUnit file: {str(error).splitlines()[0]}")
            continue
        for suite in [found] if isinstance(found, TestSuite) else found:
            # pytest writes the name of the host, which is nobody's business elsewhere.
            suite._elem.attrib.pop("hostname", None)
            suite.name = f"{suite.name} ({names[source]})" if suite.name else names[source]
            # Not add_testsuite: it mixes suites of one name.
            merged.append(suite)
    merged.update_statistics()
    if len(problems) < len(sources):
        write_atomically(target, merged.tostring().decode("utf-8") + "\n")
    if problems:
        raise ResultsError(f"{len(sources) - len(problems)} of {len(sources)} files merged; {'; '.join(problems)}")
    whole: JUnitXml = merged
    return whole
