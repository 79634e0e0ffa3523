package dev.parley.transport.rabbitmq;

import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import java.io.IOException;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * One open connection with one channel, on which requests go out, one at a time as the library wants it, and replies come in. Once lost, it
 * stays lost: its reply queue is gone too, so that no late reply can reach another call.
 */
final class RabbitMqConnection {
    private static final int TO_CLOSE_MS = 300;
    /** Source: rabbitmq.com/docs/direct-reply-to. */
    private static final String DIRECT = "amq.rabbitmq.reply-to";

    private final Location.AtBroker to;
    private final Wiring wiring;
    private final Connection connection;
    private final Channel channel;
    private final String replyTo;
    private final ReentrantLock publishing = new ReentrantLock();
    private final ConcurrentHashMap<String, CompletableFuture<RabbitMqMessage>> inFlight = new ConcurrentHashMap<>();
    private final AtomicLong calls = new AtomicLong();
    /** Calls whose requests the broker has not confirmed yet, by publishing number. */
    private final ConcurrentNavigableMap<Long, String> unconfirmed = new ConcurrentSkipListMap<>();

    private volatile @Nullable CallException lost;

    private RabbitMqConnection(Wiring wiring, Location.AtBroker to, Connection connection) throws IOException {
        this.wiring = wiring;
        this.to = to;
        this.connection = connection;
        this.channel = connection.createChannel();
        this.replyTo = wiring.direct() ? DIRECT : channel.queueDeclare().getQueue();
    }

    /**
     * Blocks until replies can come in.
     *
     * @throws CallException {@link Code#UNAVAILABLE} when there is no broker at that address
     */
    static RabbitMqConnection open(String caller, Wiring wiring, Location.AtBroker to) {
        ConnectionFactory factory = RabbitMqTransport.factory(to);
        // the next call connects again
        factory.setAutomaticRecoveryEnabled(false);
        try {
            Connection connection = factory.newConnection(caller + ">" + to.service());
            try {
                RabbitMqConnection opened = new RabbitMqConnection(wiring, to, connection);
                opened.listen();
                return opened;
            } catch (IOException | RuntimeException e) {
                connection.abort(TO_CLOSE_MS);
                throw e;
            }
        } catch (IOException | TimeoutException | AlreadyClosedException e) {
            throw new CallException(Code.UNAVAILABLE, "RabbitMQ at " + to + " cannot be reached: " + e, e);
        }
    }

    private void listen() throws IOException {
        channel.addShutdownListener(cause -> lost("connection lost: " + cause.getMessage()));
        channel.addReturnListener(returned -> fail(
                returned.getProperties().getCorrelationId(),
                "there is no queue " + to.service() + " (is the service up?): " + returned.getReplyText()));
        if (wiring.confirms()) {
            channel.confirmSelect();
            channel.addConfirmListener(
                    (number, andBefore) -> settled(number, andBefore).clear(), (number, andBefore) -> {
                        var refused = settled(number, andBefore);
                        refused.values().forEach(id -> fail(id, "the broker refused the request"));
                        refused.clear();
                    });
        }
        channel.basicConsume(replyTo, true, (tag, delivery) -> replied(delivery), tag -> lost("reply queue deleted"));
    }

    private ConcurrentNavigableMap<Long, String> settled(long number, boolean andBefore) {
        return andBefore ? unconfirmed.headMap(number, true) : unconfirmed.subMap(number, true, number, true);
    }

    boolean isLost() {
        return lost != null;
    }

    /** @param reply completed with the reply, unless its owner ends it before */
    void send(Operation<?, ?> operation, Record request, CompletableFuture<RabbitMqMessage> reply) {
        String id = wiring.direct()
                ? Long.toString(calls.incrementAndGet())
                : UUID.randomUUID().toString();
        RabbitMqMessage message;
        try {
            message = RabbitMqMessage.request(operation, request, replyTo, id);
        } catch (CallException e) {
            reply.completeExceptionally(e);
            return;
        }
        inFlight.put(id, reply);
        reply.whenComplete((done, thrown) -> inFlight.remove(id));
        CallException gone = lost;
        if (gone != null) {
            // lost() may have gone through the table before this call stood in it
            reply.completeExceptionally(gone);
            return;
        }
        publishing.lock();
        try {
            if (wiring.confirms()) {
                unconfirmed.put(channel.getNextPublishSeqNo(), id);
            }
            channel.basicPublish("", to.service(), true, message.properties(), message.body());
        } catch (IOException | AlreadyClosedException e) {
            reply.completeExceptionally(new CallException(Code.UNAVAILABLE, to + ": request not sent: " + e, e));
        } finally {
            publishing.unlock();
        }
    }

    private void replied(Delivery delivery) {
        CompletableFuture<RabbitMqMessage> reply =
                inFlight.get(String.valueOf(delivery.getProperties().getCorrelationId()));
        if (reply != null) {
            reply.complete(new RabbitMqMessage(delivery.getProperties(), delivery.getBody()));
        }
    }

    private void fail(String id, String why) {
        CompletableFuture<RabbitMqMessage> reply = inFlight.get(id);
        if (reply != null) {
            reply.completeExceptionally(new CallException(Code.UNAVAILABLE, to + ": " + why));
        }
    }

    private void lost(String how) {
        CallException gone = new CallException(Code.UNAVAILABLE, to + ": " + how);
        lost = gone;
        inFlight.values().forEach(reply -> reply.completeExceptionally(gone));
        if (connection.isOpen()) {
            // a channel alone may end, by an error of its own; not on this thread, which the connection waits for
            Thread.ofVirtual().start(() -> connection.abort(TO_CLOSE_MS));
        }
    }

    void close() {
        lost("client closed");
        connection.abort(TO_CLOSE_MS);
    }
}
