package dev.parley.transport.kafka;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;

/**
 * A producer of requests and a consumer of replies with a topic of its own. The library reconnects by itself; only an error that it does not
 * get over, or closing, ends it.
 */
final class KafkaConnection {
    private static final Duration TO_CLOSE = Duration.ofMillis(300);
    private static final Duration POLL = Duration.ofSeconds(1);

    private final Location.AtBroker to;
    private final byte[] replyTopic;
    private final KafkaProducer<byte[], byte[]> producer;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final ConcurrentHashMap<UUID, CompletableFuture<ConsumerRecord<byte[], byte[]>>> inFlight =
            new ConcurrentHashMap<>();

    private volatile @Nullable CallException lost;
    private @Nullable Thread polling;

    private KafkaConnection(Wiring wiring, Location.AtBroker to, String replyTopic) {
        this.to = to;
        this.replyTopic = replyTopic.getBytes(StandardCharsets.UTF_8);
        producer = new KafkaProducer<>(wiring.producer(KafkaTransport.broker(to)));
        consumer = new KafkaConsumer<>(wiring.replies(KafkaTransport.broker(to)));
    }

    /**
     * Blocks until replies can come in.
     *
     * @throws CallException {@link Code#UNAVAILABLE} when there is no broker at that address
     */
    static KafkaConnection open(String caller, Wiring wiring, Location.AtBroker to) {
        String replyTopic = Wiring.replyTopic(to.service(), caller);
        Topics.make(wiring, to, to.service(), replyTopic);
        KafkaConnection connection = new KafkaConnection(wiring, to, replyTopic);
        try {
            connection.listen(new TopicPartition(replyTopic, 0));
            return connection;
        } catch (KafkaException e) {
            connection.producer.close(TO_CLOSE);
            connection.consumer.close(CloseOptions.timeout(TO_CLOSE));
            throw new CallException(Code.UNAVAILABLE, "Kafka at " + to + " cannot be reached: " + e, e);
        }
    }

    private void listen(TopicPartition replies) {
        consumer.assign(List.of(replies));
        consumer.seekToEnd(consumer.assignment());
        // asks the broker, so that no reply is behind it
        consumer.position(replies);
        // the first request would wait for this
        producer.partitionsFor(to.service());
        polling = Thread.ofPlatform().name("kafka-replies-" + to.service()).start(this::poll);
    }

    boolean isLost() {
        return lost != null;
    }

    /** @param reply completed with the reply, unless its owner ends it before */
    void send(Operation<?, ?> operation, Record request, CompletableFuture<ConsumerRecord<byte[], byte[]>> reply) {
        UUID id = UUID.randomUUID();
        inFlight.put(id, reply);
        reply.whenComplete((done, thrown) -> inFlight.remove(id));
        CallException gone = lost;
        if (gone != null) {
            // lost() may have gone through the table before this call stood in it
            reply.completeExceptionally(gone);
            return;
        }
        try {
            producer.send(KafkaMessage.request(to.service(), operation, request, replyTopic, id), (sent, failed) -> {
                if (failed != null) {
                    reply.completeExceptionally(notSent(failed));
                }
            });
        } catch (CallException e) {
            reply.completeExceptionally(e);
        } catch (KafkaException | IllegalStateException e) {
            reply.completeExceptionally(notSent(e));
        }
    }

    private CallException notSent(Exception why) {
        return why instanceof RecordTooLargeException
                ? new CallException(Code.TOO_LARGE, String.valueOf(why.getMessage()), why)
                : new CallException(Code.UNAVAILABLE, to + ": request not sent: " + why, why);
    }

    private void poll() {
        try (consumer) {
            while (lost == null) {
                for (ConsumerRecord<byte[], byte[]> message : consumer.poll(POLL)) {
                    UUID id = KafkaMessage.id(message.headers());
                    CompletableFuture<ConsumerRecord<byte[], byte[]>> reply = id == null ? null : inFlight.get(id);
                    if (reply != null) {
                        reply.complete(message);
                    }
                }
            }
        } catch (WakeupException closing) {
            // what it is woken for
        } catch (KafkaException e) {
            lost("no replies any more: " + e);
            producer.close(TO_CLOSE);
        }
    }

    private void lost(String how) {
        CallException gone = new CallException(Code.UNAVAILABLE, to + ": " + how);
        lost = gone;
        inFlight.values().forEach(reply -> reply.completeExceptionally(gone));
    }

    void close() {
        lost("client closed");
        consumer.wakeup();
        producer.close(TO_CLOSE);
        try {
            if (polling != null) {
                polling.join(TO_CLOSE);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
