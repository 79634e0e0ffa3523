package dev.parley.transport.kafka;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.TopicExistsException;

/** Topics are there before they are used: one that appears with its first message makes the first calls wait. */
final class Topics {
    private Topics() {}

    /**
     * Blocks until the topics are there; those that are already stay as they are.
     *
     * @throws CallException {@link Code#UNAVAILABLE} if the broker does not answer
     */
    static void make(Wiring wiring, Location.AtBroker at, String... names) {
        try (Admin admin = Admin.create(wiring.admin(KafkaTransport.broker(at)))) {
            var made = admin.createTopics(Arrays.stream(names)
                    .map(name -> new NewTopic(name, Optional.empty(), Optional.empty())
                            .configs(Map.of(
                                    TopicConfig.MAX_MESSAGE_BYTES_CONFIG, Integer.toString(Wiring.MAX_MESSAGE_BYTES))))
                    .toList());
            for (KafkaFuture<Void> each : made.values().values()) {
                try {
                    each.get();
                } catch (ExecutionException e) {
                    if (!(e.getCause() instanceof TopicExistsException)) {
                        throw new CallException(
                                Code.UNAVAILABLE, "Kafka at " + at + " cannot be used: " + e.getCause(), e);
                    }
                }
            }
        } catch (KafkaException e) {
            throw new CallException(Code.UNAVAILABLE, "Kafka at " + at + " cannot be used: " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for Kafka at " + at, e);
        }
    }
}
