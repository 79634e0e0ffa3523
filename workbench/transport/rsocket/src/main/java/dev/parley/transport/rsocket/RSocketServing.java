package dev.parley.transport.rsocket;

import dev.parley.encoding.json.JsonCodec;
import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Contract;
import dev.parley.spi.Handler;
import dev.parley.spi.Location;
import dev.parley.spi.Operation;
import dev.parley.spi.Transport;
import io.rsocket.ConnectionSetupPayload;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketServer;
import io.rsocket.frame.decoder.PayloadDecoder;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.DefaultPayload;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpServer;

/** Answers requests on a scheduler for blocking code. */
final class RSocketServing implements Transport.Server, SocketAcceptor {
    /** As many as a web server with a thread a request has; Reactor's own default of ten a core would queue 200 callers. */
    static final int THREADS = 200;

    private final Contract contract;
    private final Handler handler;
    private final LoopResources loops = LoopResources.create("rsocket-server");
    private final Scheduler blocking = Schedulers.newBoundedElastic(THREADS, 100_000, "rsocket-handler", 60, true);
    private final Set<RSocket> callers = ConcurrentHashMap.newKeySet();

    /** One party for the server itself and one for each request under way. */
    private final Phaser underWay = new Phaser(1);

    private final CloseableChannel channel;

    RSocketServing(Contract contract, Location at, Handler handler) {
        this.contract = contract;
        this.handler = handler;
        TcpServer tcp = TcpServer.create().host(at.host()).port(at.port()).runOn(loops);
        try {
            channel = Mono.from(RSocketServer.create(this)
                            .payloadDecoder(PayloadDecoder.ZERO_COPY)
                            .bind(TcpServerTransport.create(tcp)))
                    .toFuture()
                    .join();
        } catch (RuntimeException e) {
            blocking.dispose();
            end(loops);
            throw new CallException(Code.UNAVAILABLE, "cannot listen on " + at + ": " + e.getMessage(), e);
        }
    }

    @Override
    public Mono<RSocket> accept(ConnectionSetupPayload setup, RSocket caller) {
        callers.add(caller);
        caller.onClose().doFinally(end -> callers.remove(caller)).subscribe(closed -> {}, failed -> {});
        return Mono.just(new RSocket() {
            @Override
            public Mono<Payload> requestResponse(Payload request) {
                byte[] body = new byte[request.data().readableBytes()];
                request.data().getBytes(request.data().readerIndex(), body);
                String operation = request.getMetadataUtf8();
                request.release();
                underWay.register();
                return Mono.fromCallable(() -> answered(operation, body))
                        .onErrorMap(Errors::written)
                        .subscribeOn(blocking)
                        .doFinally(end -> underWay.arriveAndDeregister());
            }
        });
    }

    private Payload answered(String operation, byte[] body) {
        try {
            return DefaultPayload.create(JsonCodec.encode(handled(contract.operation(operation), body)));
        } catch (Error e) {
            // Reactor lets some errors through to the thread's end
            throw CallException.of(e);
        }
    }

    private <Q extends Record, R extends Record> R handled(Operation<Q, R> operation, byte[] body) {
        return handler.handle(operation, JsonCodec.decode(body, operation.request()));
    }

    @Override
    public void close() {
        try {
            underWay.awaitAdvanceInterruptibly(underWay.arrive(), GRACE.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            // those that still wait are ended with their connections
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        callers.forEach(RSocket::dispose);
        channel.dispose();
        blocking.dispose();
        end(loops);
    }

    static void end(LoopResources loops) {
        loops.disposeLater(Duration.ZERO, Duration.ofSeconds(1)).toFuture().join();
    }
}
