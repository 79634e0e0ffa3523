package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import dev.parley.transport.thrift.generated.fault.Fault;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;

/** Serves the generated processor. Connections are kept in view, so that idle ones do not hold up the end. */
final class ThriftServing implements Transport.Server {

    private final Handler handler;
    private final Set<TTransport> connections = ConcurrentHashMap.newKeySet();
    /** One party for the server itself and one for each call under way, its reply included. */
    private final Phaser underWay = new Phaser(1);
    /** Whether the call that this thread reads has reached its handler. */
    private final ThreadLocal<Boolean> hasBegun = ThreadLocal.withInitial(() -> false);

    private final ExecutorService threads = Executors.newCachedThreadPool(
            Thread.ofPlatform().name("thrift-connection-", 0).factory());
    private final TThreadPoolServer server;
    private final Thread acceptor;
    private volatile boolean closing;

    ThriftServing(TProtocolFactory protocol, Location at, Handler handler) {
        this.handler = handler;
        TServerSocket listening;
        try {
            listening = new TServerSocket(new InetSocketAddress(at.host(), at.port()));
        } catch (TTransportException e) {
            threads.shutdown();
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + ": " + e.getMessage(), e);
        }
        server = new TThreadPoolServer(new TThreadPoolServer.Args(listening)
                .processor(counting(Stubs.processor(this::handled)))
                .protocolFactory(protocol)
                .executorService(threads)
                .stopTimeoutUnit(TimeUnit.SECONDS)
                .stopTimeoutVal(1));
        server.setServerEventHandler(new Connections());
        acceptor = Thread.ofPlatform().name("thrift-accept").start(server::serve);
    }

    private TProcessor counting(TProcessor processor) {
        return (in, out) -> {
            try {
                processor.process(in, out);
            } finally {
                if (hasBegun.get()) {
                    hasBegun.remove();
                    underWay.arriveAndDeregister();
                }
            }
        };
    }

    private <Q extends Record, R extends Record> R handled(Operation<Q, R> operation, Q request) throws Fault {
        if (closing) {
            throw Errors.written(new CallException(Code.UNAVAILABLE, "the server is closing"));
        }
        hasBegun.set(true);
        underWay.register();
        try {
            return handler.handle(operation, request);
        } catch (RuntimeException | Error e) {
            throw Errors.written(e);
        }
    }

    @Override
    public void close() {
        closing = true;
        try {
            underWay.awaitAdvanceInterruptibly(underWay.arrive(), GRACE.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            // those that still wait are ended with their connections
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        // not before: the server interrupts its threads as soon as it is told to stop
        server.stop();
        connections.forEach(TTransport::close);
        threads.shutdownNow();
        try {
            acceptor.join(Duration.ofSeconds(2));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Notes each connection from its first byte to its end. */
    private final class Connections implements TServerEventHandler {
        private record Context(TTransport transport) implements ServerContext {
            @Override
            public <T> T unwrap(Class<T> type) {
                return type.cast(this);
            }

            @Override
            public boolean isWrapperFor(Class<?> type) {
                return type.isInstance(this);
            }
        }

        @Override
        public void preServe() {}

        @Override
        public ServerContext createContext(TProtocol in, TProtocol out) {
            TTransport transport = in.getTransport();
            connections.add(transport);
            if (closing) {
                transport.close();
            }
            return new Context(transport);
        }

        @Override
        public void deleteContext(ServerContext context, TProtocol in, TProtocol out) {
            connections.remove(in.getTransport());
        }

        @Override
        public void processContext(ServerContext context, TTransport in, TTransport out) {}
    }
}
