#!/bin/bash
# A broker, in the foreground. Without a heap of its own it takes what the official image takes.
export KAFKA_HEAP_OPTS="${KAFKA_HEAP_OPTS:--Xmx1G -Xms1G}"
export KAFKA_LOG4J_OPTS="${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/log4j2.yaml}"
exec "$(dirname "$0")/kafka-run-class.sh" kafka.Kafka "$@"
