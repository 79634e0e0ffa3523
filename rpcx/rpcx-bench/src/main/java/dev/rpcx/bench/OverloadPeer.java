package dev.rpcx.bench;

import dev.rpcx.Client;
import dev.rpcx.Method;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.bench.proto.EchoGrpc;
import dev.rpcx.bench.proto.Text;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.Status;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Peers that carry calls to a service of fixed capacity: the service does {@link #WORKERS} calls at a time and needs
 * {@link #WORK_MILLIS} for each, as with connections to a database. A call has {@link #DEADLINE_MILLIS} to end.
 *
 * <p>{@code rpcx} is RPCX with its standard settings. {@code grpc} is grpc-java as its guides set it up, with deadlines
 * on the stub. {@code grpc-limited} is grpc-java as a team would set it up that knows the capacity of its service: an
 * interceptor takes as many calls at once as can be done in half a deadline, and refuses all others.
 */
enum OverloadPeer {
    RPCX("rpcx") {
        @Override
        AutoCloseable serve(int port, Work work) {
            return new Server(port, RegistryServer.registry(new RpcxService(work))).start();
        }

        @Override
        Caller connect(int port) {
            Client client = Client.standard();
            RpcxCalls calls = client.create(RpcxCalls.class, "127.0.0.1", port);
            return new Caller() {
                @Override
                public void call(EndListener listener) {
                    CompletableFuture<String> call;
                    try {
                        call = calls.hello("work");
                    } catch (RPCXException refused) {
                        listener.ended(End.REFUSED);
                        return;
                    }
                    call.whenComplete((reply, thrown) -> listener.ended(
                            thrown == null
                                    ? End.REPLIED
                                    : thrown instanceof RPCXException e && e.code() == RPCXException.Code.OVERLOADED
                                            ? End.REFUSED
                                            : End.FAILED_OR_LATE));
                }

                @Override
                public void close() {
                    client.close();
                }
            };
        }
    },
    GRPC("grpc") {
        @Override
        AutoCloseable serve(int port, Work work) throws Exception {
            return serveGrpc(port, work, Integer.MAX_VALUE);
        }

        @Override
        Caller connect(int port) {
            return new GrpcCaller(port);
        }
    },
    GRPC_LIMITED("grpc-limited") {
        @Override
        AutoCloseable serve(int port, Work work) throws Exception {
            return serveGrpc(port, work, (int) (WORKERS * DEADLINE_MILLIS / WORK_MILLIS / 2));
        }

        @Override
        Caller connect(int port) {
            return new GrpcCaller(port);
        }
    };

    static final int WORKERS = 4;
    static final long WORK_MILLIS = 4;
    static final long DEADLINE_MILLIS = 200;

    /** Ways in which a call ends. Every failure other than a refusal counts as {@code FAILED_OR_LATE}. */
    enum End {
        REPLIED,
        REFUSED,
        FAILED_OR_LATE
    }

    /** Callback that is told once how a call ended, on any thread. */
    @FunctionalInterface
    interface EndListener {
        void ended(End end);
    }

    interface Caller extends AutoCloseable {
        void call(EndListener listener);

        @Override
        void close();
    }

    /** Work that the service does for each call, and the number of times that it has been done. */
    static final class Work {
        private final Semaphore workers = new Semaphore(WORKERS, true);
        final AtomicLong done = new AtomicLong();

        void run() throws InterruptedException {
            workers.acquire();
            try {
                long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WORK_MILLIS);
                for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                done.incrementAndGet();
            } finally {
                workers.release();
            }
        }
    }

    final String title;

    OverloadPeer(String title) {
        this.title = title;
    }

    abstract AutoCloseable serve(int port, Work work) throws Exception;

    abstract Caller connect(int port);

    static OverloadPeer named(String title) {
        for (OverloadPeer peer : values()) {
            if (peer.title.equals(title)) {
                return peer;
            }
        }
        throw new IllegalArgumentException("peer: " + title + " (expected: rpcx, grpc or grpc-limited)");
    }

    @RPCXClient(remoteServerName = "work")
    interface RpcxCalls {
        @Method(timeoutMillis = DEADLINE_MILLIS)
        CompletableFuture<String> hello(String text);
    }

    @RPCXServer("work")
    static final class RpcxService {
        private final Work work;

        RpcxService(Work work) {
            this.work = work;
        }

        @Method
        String hello(String text) throws InterruptedException {
            work.run();
            return text;
        }
    }

    private static AutoCloseable serveGrpc(int port, Work work, int maxAtOnce) throws Exception {
        io.grpc.Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port))
                .addService(ServerInterceptors.intercept(new GrpcService(work), new Limit(new Semaphore(maxAtOnce))))
                .build()
                .start();
        return server::shutdownNow;
    }

    private static final class GrpcService extends EchoGrpc.EchoImplBase {
        private final Work work;

        GrpcService(Work work) {
            this.work = work;
        }

        @Override
        public void hello(Text request, StreamObserver<Text> reply) {
            try {
                work.run();
            } catch (InterruptedException e) {
                reply.onError(Status.CANCELLED.asRuntimeException());
                return;
            }
            if (!Context.current().isCancelled()) {
                reply.onNext(request);
                reply.onCompleted();
            }
        }
    }

    private record Limit(Semaphore places) implements ServerInterceptor {
        @Override
        public <Q, P> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, P> call, Metadata headers, ServerCallHandler<Q, P> next) {
            if (!places.tryAcquire()) {
                call.close(Status.RESOURCE_EXHAUSTED, new Metadata());
                return new ServerCall.Listener<>() {};
            }
            return new io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener<>(
                    next.startCall(call, headers)) {
                // exactly one of the two methods is called, once, after the handler has ended
                @Override
                public void onComplete() {
                    places.release();
                    super.onComplete();
                }

                @Override
                public void onCancel() {
                    places.release();
                    super.onCancel();
                }
            };
        }
    }

    private static final class GrpcCaller implements Caller {
        private final ManagedChannel channel;
        private final EchoGrpc.EchoStub stub;

        GrpcCaller(int port) {
            channel = NettyChannelBuilder.forAddress("127.0.0.1", port)
                    .usePlaintext()
                    .build();
            stub = EchoGrpc.newStub(channel);
        }

        @Override
        public void call(EndListener listener) {
            stub.withDeadlineAfter(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)
                    .hello(Text.newBuilder().setText("work").build(), new StreamObserver<>() {
                        @Override
                        public void onNext(Text reply) {}

                        @Override
                        public void onError(Throwable thrown) {
                            listener.ended(
                                    Status.fromThrowable(thrown).getCode() == Status.Code.RESOURCE_EXHAUSTED
                                            ? End.REFUSED
                                            : End.FAILED_OR_LATE);
                        }

                        @Override
                        public void onCompleted() {
                            listener.ended(End.REPLIED);
                        }
                    });
        }

        @Override
        public void close() {
            channel.shutdownNow();
        }
    }
}
