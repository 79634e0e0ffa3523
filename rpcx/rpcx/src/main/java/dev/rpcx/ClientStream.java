package dev.rpcx;

import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** What a client's method returns that brings a stream: each subscriber makes a call of its own. */
final class ClientStream implements Flow.Publisher<Object> {
    private final ClientMethod method;
    private final Object[] arguments;
    private final Metadata metadata;

    ClientStream(ClientMethod method, Object[] arguments, Metadata metadata) {
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
        new Call(method).start(subscriber);
    }

    private final class Call extends AsyncCall implements StreamReceiver.Peer {
        private final StreamReceiver receiver;

        // set before the receiver is opened, and read only after that
        private @Nullable ClientConnection connection;
        private volatile @Nullable ClientCall call;
        private long serial;
        private volatile boolean cancelled;

        Call(ClientMethod method) {
            super(method);
            receiver = new StreamReceiver(method.result(), this);
        }

        void start(Flow.Subscriber<? super Object> subscriber) {
            receiver.begin(subscriber);
            int key = method.key(arguments);
            ClientConnection ready = method.route().ready(key);
            if (ready != null) {
                send(ready);
                return;
            }
            method.route().connect(key).whenComplete((connected, failure) -> {
                if (connected != null) {
                    send(connected);
                } else {
                    receiver.end(method.route().unreachable(failure));
                    receiver.open();
                }
            });
        }

        private void send(ClientConnection on) {
            if (cancelled) {
                return;
            }
            try {
                long deadline = method.deadline();
                ClientCall slot = on.slots.acquire(deadline);
                method.encode(on, slot, arguments, metadata, deadline);
                connection = on;
                serial = slot.serial();
                call = slot;
                StreamSender upload = slot.upload;
                slot.sendAsync(this);
                ClientMethod.subscribe(upload, arguments);
                if (cancelled) {
                    slot.cancel(serial);
                }
            } catch (Throwable e) {
                receiver.end(e);
            }
            receiver.open();
        }

        @Override
        public void credit(long items) {
            ClientConnection to = connection;
            if (to != null) {
                to.sendCredit(java.util.Objects.requireNonNull(call), serial, items);
            }
        }

        @Override
        public void cancel() {
            cancelled = true;
            ClientCall slot = call;
            if (slot != null) {
                slot.cancel(serial);
            }
        }

        @Override
        @Nullable
        Object decode(io.netty.buffer.ByteBuf reply) {
            return null;
        }

        @Override
        StreamReceiver receiver() {
            return receiver;
        }

        @Override
        void succeed(@Nullable Object value) {
            receiver.end(null);
        }

        @Override
        void fail(RPCXException error) {
            receiver.end(error);
        }
    }
}
