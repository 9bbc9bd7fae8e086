#!/bin/bash
# Runs a class of Kafka on the Java of this image. KAFKA_HEAP_OPTS, KAFKA_OPTS and KAFKA_LOG4J_OPTS work as usual.
mkdir -p "${LOG_DIR:-/opt/kafka/logs}" || exit 1
# shellcheck disable=SC2086
exec "$JAVA_HOME/bin/java" ${KAFKA_HEAP_OPTS:--Xmx256M} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    --sun-misc-unsafe-memory-access=allow \
    --enable-native-access=ALL-UNNAMED -Djava.awt.headless=true \
    ${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/etc/kafka/docker/tools-log4j2.yaml} ${KAFKA_OPTS:-} \
    -cp "/opt/kafka/libs/*" "$@"
