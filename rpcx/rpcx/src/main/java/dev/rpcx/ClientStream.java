package dev.rpcx;

import java.util.concurrent.Flow;
import org.jspecify.annotations.Nullable;

/** What a client's method returns that brings a stream: each subscriber makes a call of its own. */
final class ClientStream implements Flow.Publisher<Object> {
    private final ClientMethod method;
    private final Object[] arguments;
    private final Metadata metadata;
    private final @Nullable CallContext maker = CallContext.here();

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

        /** Set where no connection was ready. */
        private volatile Route.@Nullable Wait wait;

        private long deadlineNanos;
        private long permit = CircuitBreaker.GIVEN;

        /** The service has answered; event loop only. */
        private boolean answered;

        Call(ClientMethod method) {
            super(method);
            receiver = new StreamReceiver(method.result(), this);
        }

        void start(Flow.Subscriber<? super Object> subscriber) {
            receiver.begin(subscriber);
            if (cancelled) {
                // given up before it began: a circuit's trial is for a call that can have an end
                receiver.open();
                return;
            }
            deadlineNanos = method.deadline(maker);
            try {
                permit = method.route().called();
                int key = method.key(arguments);
                ClientConnection ready = method.route().ready(key);
                if (ready != null) {
                    send(ready);
                    return;
                }
                wait = method.route().await(key, deadlineNanos, method.times(), permit, (connected, failure) -> {
                    if (connected != null) {
                        send(connected);
                    } else {
                        refused(java.util.Objects.requireNonNull(failure));
                    }
                });
                if (cancelled) {
                    endWait();
                }
            } catch (Throwable e) {
                // an Error too: the subscriber has its subscription already and waits for an end
                refused(e);
            }
        }

        private void refused(Throwable failure) {
            method.route().over(permit);
            receiver.end(failure);
            receiver.open();
        }

        /** Nothing has been sent, and nothing will be: only a subscriber that broke a rule still waits for a word. */
        private void givenUp() {
            method.route().over(permit);
            receiver.open();
        }

        private void send(ClientConnection on) {
            if (cancelled) {
                givenUp();
                return;
            }
            try {
                ClientCall slot = method.prepare(on, arguments, null, metadata, deadlineNanos);
                long own = slot.serial;
                ClientConnection used = slot.connection;
                StreamSender upload;
                boolean isHeld = true;
                try {
                    connection = used;
                    serial = own;
                    call = slot;
                    upload = slot.upload;
                    slot.sendAsync(this);
                    isHeld = false;
                } finally {
                    if (isHeld) {
                        // by stores, as where a caller blocks
                        slot.orphan = own;
                        used.slots.hasOrphans = true;
                    }
                }
                ClientMethod.subscribe(upload, arguments);
                if (cancelled) {
                    slot.cancel(serial);
                }
            } catch (Throwable e) {
                refused(e);
                return;
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
            } else {
                endWait();
            }
        }

        private void endWait() {
            Route.Wait begun = wait;
            if (begun != null && begun.giveUp()) {
                givenUp();
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
        void arrived() {
            if (!answered) {
                answered = true;
                count(null);
            }
        }

        private void count(@Nullable RPCXException error) {
            ClientConnection used = connection;
            if (used != null) {
                used.address().ended(outcome(error, deadlineNanos), permit);
            }
        }

        @Override
        void succeed(@Nullable Object value) {
            arrived();
            receiver.end(null);
        }

        @Override
        void endAnyway(@Nullable Object value, @Nullable RPCXException error) {
            receiver.end(error);
        }

        @Override
        void fail(RPCXException error) {
            // a stream whose time is over after it has brought something has done what it was asked for
            if (!answered || error.code() != RPCXException.Code.DEADLINE_EXCEEDED) {
                count(error);
            }
            receiver.end(error);
        }
    }
}
