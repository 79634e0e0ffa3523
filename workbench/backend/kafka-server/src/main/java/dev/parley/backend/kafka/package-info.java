/**
 * A Kafka broker as a process of its own: {@link dev.parley.backend.kafka.KafkaServerMain}. Imports Kafka and the JDK.
 */
@NullMarked
package dev.parley.backend.kafka;

import org.jspecify.annotations.NullMarked;
