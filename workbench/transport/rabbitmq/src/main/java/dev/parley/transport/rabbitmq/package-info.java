/**
 * Request and reply through RabbitMQ: a queue for each service, a queue of replies for each client connection, matched by correlation id.
 *
 * <p>Starting points: {@link dev.parley.transport.rabbitmq.RabbitMqProvider}, {@link dev.parley.transport.rabbitmq.Wiring} for what the
 * variants differ in. Replies are completed on the client library's consumer thread; handlers run where the wiring says. Imports the SPI,
 * the JSON encoding and the official Java client; no other transport.
 */
@NullMarked
package dev.parley.transport.rabbitmq;

import org.jspecify.annotations.NullMarked;
