package dev.parley.transport.kafka;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;

/** Consumes one service's topic. The library connects again after a loss. */
final class KafkaServer implements Transport.Server {
    private static final System.Logger LOG = System.getLogger(KafkaServer.class.getName());
    private static final Duration TO_BE_ASSIGNED = Duration.ofSeconds(30);
    private static final Duration POLL = Duration.ofSeconds(1);

    private final Contract contract;
    private final Handler handler;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final ExecutorService requests = Executors.newVirtualThreadPerTaskExecutor();
    private final CompletableFuture<Void> assigned = new CompletableFuture<>();
    private final Thread polling;
    private volatile boolean closed;

    private KafkaServer(Wiring wiring, Contract contract, Location.AtBroker at, Handler handler) {
        this.contract = contract;
        this.handler = handler;
        String broker = KafkaTransport.broker(at);
        producer = new KafkaProducer<>(wiring.producer(broker));
        consumer = new KafkaConsumer<>(wiring.requests(broker, at.service()));
        consumer.subscribe(List.of(at.service()), new FromHere());
        polling = Thread.ofPlatform().name("kafka-requests-" + at.service()).start(this::poll);
    }

    /** Blocks until requests are taken. */
    static KafkaServer start(Wiring wiring, Contract contract, Location.AtBroker at, Handler handler) {
        Topics.make(wiring, at, at.service());
        KafkaServer server = new KafkaServer(wiring, contract, at, handler);
        try {
            server.assigned.get(TO_BE_ASSIGNED.toSeconds(), TimeUnit.SECONDS);
            return server;
        } catch (ExecutionException | TimeoutException e) {
            server.close();
            throw new CallException(Code.UNAVAILABLE, "Kafka at " + at + " gave no partition to consume: " + e, e);
        } catch (InterruptedException e) {
            server.close();
            Thread.currentThread().interrupt();
            throw new CallException(Code.UNAVAILABLE, "interrupted while waiting for Kafka at " + at, e);
        }
    }

    /** Knows where it reads on before it says that it serves: a place looked up later would leave out what was sent until then. */
    private final class FromHere implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(consumer::position);
            if (!partitions.isEmpty()) {
                assigned.complete(null);
            }
        }
    }

    private void poll() {
        try (consumer) {
            while (!closed) {
                try {
                    for (ConsumerRecord<byte[], byte[]> request : consumer.poll(POLL)) {
                        requests.execute(() -> answer(request));
                    }
                } catch (WakeupException end) {
                    break;
                }
            }
            consumer.close(CloseOptions.timeout(GRACE)
                    .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
        } catch (KafkaException e) {
            assigned.completeExceptionally(e);
            LOG.log(System.Logger.Level.ERROR, "no more requests are taken", e);
        }
    }

    private void answer(ConsumerRecord<byte[], byte[]> request) {
        reply(request, KafkaMessage.answer(request, contract, handler));
    }

    private void reply(ConsumerRecord<byte[], byte[]> request, @Nullable ProducerRecord<byte[], byte[]> reply) {
        if (reply == null) {
            return;
        }
        try {
            producer.send(reply, (sent, failed) -> {
                if (failed instanceof RecordTooLargeException) {
                    reply(
                            request,
                            KafkaMessage.error(
                                    request, new CallException(Code.TOO_LARGE, String.valueOf(failed.getMessage()))));
                } else if (failed != null) {
                    LOG.log(System.Logger.Level.DEBUG, "reply not sent", failed);
                }
            });
        } catch (KafkaException | IllegalStateException closedOrTimedOut) {
            LOG.log(System.Logger.Level.DEBUG, "reply not sent", closedOrTimedOut);
        }
    }

    @Override
    public void close() {
        closed = true;
        consumer.wakeup();
        try {
            polling.join(GRACE.multipliedBy(2));
            requests.shutdown();
            if (!requests.awaitTermination(GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
                requests.shutdownNow();
            }
        } catch (InterruptedException e) {
            requests.shutdownNow();
            Thread.currentThread().interrupt();
        }
        producer.close(GRACE);
    }
}
