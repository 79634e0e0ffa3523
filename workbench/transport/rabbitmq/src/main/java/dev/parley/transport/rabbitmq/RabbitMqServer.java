package dev.parley.transport.rabbitmq;

import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Transport;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Consumers of one service's queue. After a loss the library connects again, declares the queue and consumes as before. */
final class RabbitMqServer implements Transport.Server {
    private final Connection connection;
    private final ExecutorService callbacks;
    private final ExecutorService handlers;
    private final List<RequestConsumer> consumers = new ArrayList<>();
    /** Requests under way, and one party for the server itself. */
    private final Phaser underWay = new Phaser(1);

    private RabbitMqServer(Connection connection, ExecutorService callbacks, ExecutorService handlers) {
        this.connection = connection;
        this.callbacks = callbacks;
        this.handlers = handlers;
    }

    static RabbitMqServer start(
            String service, Wiring wiring, Contract contract, Location.AtBroker at, Handler handler) {
        ExecutorService callbacks = Executors.newFixedThreadPool(
                Wiring.WORKERS,
                Thread.ofPlatform().name("rabbitmq-consumer-", 0).factory());
        // tutorial 6 handles a request in the callback that brings it
        ExecutorService handlers = wiring.direct() ? Executors.newVirtualThreadPerTaskExecutor() : callbacks;
        ConnectionFactory factory = RabbitMqTransport.factory(at);
        try {
            RabbitMqServer server = new RabbitMqServer(factory.newConnection(callbacks, service), callbacks, handlers);
            try {
                for (int i = 0; i < wiring.consumers(); i++) {
                    server.consumers.add(new RequestConsumer(
                            server.connection.createChannel(),
                            wiring,
                            at.service(),
                            request -> request.answered(contract, handler),
                            wiring.direct() ? handlers::execute : Runnable::run,
                            server.underWay));
                }
                return server;
            } catch (IOException | RuntimeException e) {
                server.close();
                throw e;
            }
        } catch (IOException | TimeoutException | AlreadyClosedException e) {
            callbacks.shutdownNow();
            handlers.shutdownNow();
            throw new CallException(Code.UNAVAILABLE, "RabbitMQ at " + at + " cannot be used: " + e, e);
        }
    }

    @Override
    public void close() {
        consumers.forEach(RequestConsumer::cancel);
        int phase = underWay.arriveAndDeregister();
        try {
            underWay.awaitAdvanceInterruptibly(phase, GRACE.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException held) {
            handlers.shutdownNow();
            callbacks.shutdownNow();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        connection.abort((int) GRACE.toMillis());
        handlers.shutdownNow();
        callbacks.shutdownNow();
    }
}
