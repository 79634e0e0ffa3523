/**
 * Request and reply through Kafka: a topic for each service, a topic of replies for each client, matched by correlation id.
 *
 * <p>Starting points: {@link dev.parley.transport.kafka.KafkaProvider}, {@link dev.parley.transport.kafka.Wiring} for what the variants
 * differ in. A thread a consumer polls: a service's hands each request to a virtual thread, a client's completes the calls. Imports the
 * SPI, the JSON encoding and Kafka's own Java client; no other transport.
 */
@NullMarked
package dev.parley.transport.kafka;

import org.jspecify.annotations.NullMarked;
