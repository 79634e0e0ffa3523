package dev.parley.transport.rabbitmq;

import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Recoverable;
import com.rabbitmq.client.RecoveryListener;
import java.io.IOException;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Phaser;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.UnaryOperator;

/** One consumer of a request queue: one channel, written by one thread at a time, as the library wants it. */
final class RequestConsumer {
    private static final System.Logger LOG = System.getLogger(RequestConsumer.class.getName());

    private final Channel channel;
    private final UnaryOperator<RabbitMqMessage> handler;
    private final Executor executor;
    private final Phaser underWay;
    private final boolean confirms;
    private final String tag;
    private final ReentrantLock writing = new ReentrantLock();
    /** Requests whose replies are not confirmed yet: delivery tags by the reply's publishing number. */
    private final ConcurrentNavigableMap<Long, Long> unconfirmed = new ConcurrentSkipListMap<>();

    /** @param underWay has a party for each request from its arrival to its reply */
    RequestConsumer(
            Channel channel,
            Wiring wiring,
            String queue,
            UnaryOperator<RabbitMqMessage> handler,
            Executor executor,
            Phaser underWay)
            throws IOException {
        this.channel = channel;
        this.handler = handler;
        this.executor = executor;
        this.underWay = underWay;
        this.confirms = wiring.confirms();
        channel.queueDeclare(queue, false, false, true, null);
        channel.basicQos(wiring.prefetch());
        if (confirms) {
            channel.confirmSelect();
            channel.addConfirmListener(this::confirmed, this::refused);
            forgetAfterLoss();
        }
        this.tag = channel.basicConsume(queue, false, (consumer, delivery) -> take(delivery), consumer -> {});
    }

    /** A channel that is opened again counts what it publishes from one. */
    private void forgetAfterLoss() {
        ((Recoverable) channel).addRecoveryListener(new RecoveryListener() {
            @Override
            public void handleRecoveryStarted(Recoverable recoverable) {
                unconfirmed.clear();
            }

            @Override
            public void handleRecovery(Recoverable recoverable) {}
        });
    }

    private void take(Delivery delivery) {
        if (underWay.register() < 0) {
            return; // closing: the broker gives the request to another consumer, or drops it with the queue
        }
        try {
            executor.execute(() -> {
                try {
                    answer(delivery);
                } finally {
                    underWay.arriveAndDeregister();
                }
            });
        } catch (RejectedExecutionException closing) {
            underWay.arriveAndDeregister();
        }
    }

    private void answer(Delivery delivery) {
        RabbitMqMessage reply = handler.apply(new RabbitMqMessage(delivery.getProperties(), delivery.getBody()));
        long deliveryTag = delivery.getEnvelope().getDeliveryTag();
        writing.lock();
        try {
            if (confirms) {
                unconfirmed.put(channel.getNextPublishSeqNo(), deliveryTag);
            }
            String replyTo = delivery.getProperties().getReplyTo();
            if (replyTo != null) {
                channel.basicPublish("", replyTo, reply.properties(), reply.body());
            }
            if (!confirms || replyTo == null) {
                channel.basicAck(deliveryTag, false);
            }
        } catch (IOException | AlreadyClosedException e) {
            // the connection is gone, and with it the queue that the caller waits at
            LOG.log(System.Logger.Level.DEBUG, "reply not sent", e);
        } finally {
            writing.unlock();
        }
    }

    private void confirmed(long number, boolean andBefore) throws IOException {
        settle(number, andBefore, true);
    }

    private void refused(long number, boolean andBefore) throws IOException {
        settle(number, andBefore, false);
    }

    private void settle(long number, boolean andBefore, boolean isConfirmed) throws IOException {
        var settled = andBefore ? unconfirmed.headMap(number, true) : unconfirmed.subMap(number, true, number, true);
        writing.lock();
        try {
            for (var it = settled.entrySet().iterator(); it.hasNext(); ) {
                long deliveryTag = it.next().getValue();
                it.remove();
                if (isConfirmed) {
                    channel.basicAck(deliveryTag, false);
                } else {
                    // handled again: the broker could not take the reply
                    channel.basicNack(deliveryTag, false, true);
                }
            }
        } catch (AlreadyClosedException e) {
            LOG.log(System.Logger.Level.DEBUG, "request not acknowledged", e);
        } finally {
            writing.unlock();
        }
    }

    /**
     * No further requests; the queue goes with its last consumer. Not under {@link #writing}: the thread that reads the broker's answer may first
     * have a confirm to settle, for which it needs that lock.
     */
    void cancel() {
        try {
            channel.basicCancel(tag);
        } catch (IOException | AlreadyClosedException e) {
            LOG.log(System.Logger.Level.DEBUG, "the broker is gone", e);
        }
    }
}
