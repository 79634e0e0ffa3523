package dev.rpcx;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** What a client's method returns that brings a stream: each subscriber makes a call of its own. */
final class ClientStream implements Flow.Publisher<Object> {
    private static final RPCXException GIVEN_UP =
            RPCXException.refused(RPCXException.Code.CANCELLED, "the caller gave the call up");

    private final ClientMethod method;
    private final Object[] arguments;
    private final Metadata metadata;
    private final @Nullable TimedContext maker = CurrentCall.get();

    ClientStream(ClientMethod method, Object[] arguments, Metadata metadata) {
        this.method = method;
        this.arguments = arguments;
        this.metadata = metadata;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
        new Call(this).start(Given.notNull(subscriber, "subscriber", "who takes the items"));
    }

    /** An attempt at a call, in the slot that it has: once it is over nothing of this reaches another call there. */
    private record Sent(ClientCall slot, long serial, AtomicLong unsentCredit) implements StreamReceiver.Way {
        @Override
        public void credit(long items) {
            if (Streams.isFirst(unsentCredit, items)) {
                slot.connection.sendCredit(slot, serial, unsentCredit);
            }
        }

        void cancel() {
            slot.cancel(serial);
        }
    }

    private static final class Call extends AsyncCall implements StreamReceiver.Peer {
        private final StreamReceiver receiver;

        /** What this is a call of; null once it is over. Whoever keeps its subscription keeps no arguments. */
        private @Nullable ClientStream stream;

        /** The latest attempt; null where none has been sent, or it has come to nobody. */
        private volatile @Nullable Sent sent;

        private volatile boolean cancelled;

        // of the latest attempt: set before it is sent, and read once it has ended
        private int attempt;
        private @Nullable StreamSender upload;

        // guarded by this
        /** A thread sends the call, and tells the receiver where its credit goes. */
        private boolean isSending;

        /** The call has come to nobody meanwhile: that thread sends it again. */
        private boolean isLeft;

        /** Set where no connection was ready. */
        private volatile Route.@Nullable Wait wait;

        /**
         * The arguments as they were when the call was made, while it waits for a connection, and from an attempt that
         * has come to nobody to the next one; null otherwise.
         */
        private @Nullable ByteBuf encoded;

        /** Pays for {@link #encoded}. */
        private Route.@Nullable WaitingBytes held;

        /** Why the arguments could not be kept for the next attempt; null if they could, or had not to be. */
        private @Nullable RPCXException unkept;

        private long deadlineNanos;
        private int key;
        private long permit = CircuitBreaker.GIVEN;

        /** The service has answered; event loop only. */
        private boolean answered;

        /** The call is over; event loop only. */
        private boolean isOver;

        Call(ClientStream stream) {
            super(stream.method);
            this.stream = stream;
            receiver = new StreamReceiver(method.result(), this);
        }

        void start(Flow.Subscriber<? super Object> subscriber) {
            ClientStream made = Objects.requireNonNull(stream);
            receiver.begin(subscriber);
            if (cancelled) {
                // given up before it began: a circuit's trial is for a call that can have an end
                givenUp();
                return;
            }
            deadlineNanos = method.deadline(made.maker);
            try {
                permit = method.route().called();
                key = method.key(made.arguments);
            } catch (Throwable e) {
                // an Error too: the subscriber has its subscription already and waits for an end
                refused(e);
                return;
            }
            findConnection();
        }

        private void findConnection() {
            try {
                ClientConnection ready = method.route().ready(key);
                if (ready != null && send(ready)) {
                    return;
                }
                keepArguments();
                Route.Wait begun = method.route()
                        .await(key, deadlineNanos, method.times(), permit, (connected, failure) -> {
                            if (connected == null) {
                                refused(Objects.requireNonNull(failure));
                            } else if (!send(connected)) {
                                findConnection();
                            }
                        });
                if (begun != null) {
                    waitsFor(begun);
                }
                if (cancelled) {
                    endWait();
                }
            } catch (Throwable e) {
                refused(e);
            }
        }

        /** This wait may be over already, and the call be in another one or at its end: then that stays. */
        private synchronized void waitsFor(Route.Wait begun) {
            Route.Wait other = wait;
            if (other == null || other.isOver()) {
                wait = begun;
                if (begun.isOver()) {
                    wait = null;
                }
            }
        }

        /** A call that waits for its first connection keeps its arguments, which the caller may change from now on. */
        private void keepArguments() {
            ClientStream of = stream;
            if (encoded == null && attempt == 0 && of != null) {
                ByteBuf made = method.encoded(of.arguments);
                hold(made.capacity());
                encoded = made;
            }
        }

        /** What pays is known before anything is charged: see {@link Route#waitingBytes}. */
        private void hold(int bytes) {
            Route.WaitingBytes taken = method.route().waitingBytes();
            held = taken;
            taken.hold(bytes);
        }

        private void forgetArguments() {
            encoded = null;
            Route.WaitingBytes taken = held;
            if (taken != null) {
                held = null;
                taken.giveBack();
            }
        }

        /** Nothing tells the caller of a stream until when its arguments may not change. */
        @Override
        void losesSlot(ClientCall slot, RPCXException error) {
            if (answered || cancelled || !method.isWorthAnother(error, attempt, attempt, upload, null)) {
                return;
            }
            ByteBuf made = slot.arguments();
            if (made != null) {
                try {
                    hold(made.readableBytes());
                    encoded = Unpooled.copiedBuffer(made);
                } catch (RPCXException noRoom) {
                    unkept = noRoom;
                }
            }
        }

        /** A request that stands in the queue all the same, as its thread failed behind that, has no next attempt. */
        private void refused(Throwable failure) {
            cancelled = true;
            // whoever keeps the subscription keeps no connection that comes later
            wait = null;
            stream = null;
            forgetArguments();
            method.route().over(permit);
            // in no more frames than the end itself takes: the stack may be at its end
            receiver.end(failure instanceof OwnEnd own ? OwnEnd.told(own) : failure);
            receiver.open();
        }

        /** Nothing has been sent, and nothing will be: only a subscriber that broke a rule still waits for a word. */
        private void givenUp() {
            refused(GIVEN_UP);
        }

        /** @return null if others have filled the connection, and the call has to wait */
        private @Nullable ClientCall prepare(ClientConnection on, ClientStream made) {
            ClientCall slot =
                    method.prepareOrWait(on, key, made.arguments, encoded, made.metadata, deadlineNanos, on.nanoTime());
            if (slot == null) {
                synchronized (this) {
                    isSending = false;
                }
            }
            return slot;
        }

        /** @return false if others have filled the connection, and the call has to wait; true also if it has ended */
        private boolean send(ClientConnection on) {
            // also for what follows the request, when the loop may have ended the call
            ClientStream made = stream;
            if (cancelled || made == null) {
                givenUp();
                return true;
            }
            synchronized (this) {
                isSending = true;
            }
            try {
                ClientCall slot = prepare(on, made);
                if (slot == null) {
                    return false;
                }
                long own = slot.serial;
                ClientConnection used = slot.connection;
                StreamSender items;
                Sent now;
                boolean isHeld = true;
                try {
                    now = new Sent(slot, own, new AtomicLong());
                    items = slot.upload;
                    attempt++;
                    upload = items;
                    sent = now;
                    sentWith(slot);
                    // before the call is sent: the loop may keep them for another attempt from then on
                    forgetArguments();
                    slot.sendAsync(this);
                    isHeld = false;
                } finally {
                    if (isHeld) {
                        // by stores, as where a caller blocks
                        slot.orphan = own;
                        used.slots.hasOrphans = true;
                    }
                }
                try {
                    begin(now, items, made);
                } catch (Throwable e) {
                    failedBehind(now, e);
                    return true;
                }
            } catch (Throwable e) {
                refused(e);
                return true;
            }
            boolean again;
            synchronized (this) {
                isSending = false;
                again = isLeft;
                isLeft = false;
            }
            if (again) {
                sendAgain();
            }
            return true;
        }

        /** What follows a request that is on its way. */
        private void begin(Sent now, @Nullable StreamSender items, ClientStream made) {
            ClientMethod.subscribe(items, made.arguments);
            if (cancelled) {
                now.cancel();
            }
            receiver.open(now);
            ClientConnection used = now.slot.connection;
            if (permit != CircuitBreaker.GIVEN || used.address().health().isUnproven()) {
                used.inLoopOrHere(() -> lookAtTrial(now));
            }
        }

        /**
         * That has failed, as for want of memory. The server is told that nobody waits, and the subscriber of the
         * failure as the call ends by that, on the event loop. What is called here may fail as well.
         */
        private void failedBehind(Sent now, Throwable failure) {
            cancelled = true;
            receiver.breakOff(failure);
            boolean isOver;
            synchronized (this) {
                isSending = false;
                isOver = isLeft;
                isLeft = false;
            }
            if (isOver) {
                // it has come to nobody, and nobody else ends it
                refused(failure);
                return;
            }
            try {
                try {
                    receiver.open();
                } finally {
                    now.cancel();
                }
            } catch (Throwable again) {
                // the server may hear nothing of it until the call's time is over
                receiver.end(failure);
            }
        }

        /**
         * A stream may have nothing to bring for long. Where it is a trial, of the circuit or of an instance, a server
         * that is heard of after a pause, and has not refused the call until then, has answered. On the event loop.
         */
        private void lookAtTrial(Sent trial) {
            ClientConnection on = trial.slot.connection;
            int before = on.reads();
            on.askForSign();
            method.route()
                    .timer(
                            () -> on.inLoopOrHere(() -> {
                                if (trial != sent || isOver || answered || on.isClosed()) {
                                    return;
                                }
                                if (on.reads() == before) {
                                    lookAtTrial(trial);
                                } else {
                                    arrived();
                                }
                            }),
                            CircuitBreaker.PAUSE_NANOS);
        }

        /** The latest attempt has come to nobody. */
        private void sendAgain() {
            sent = null;
            receiver.takeBack();
            findConnection();
        }

        /** The way of a call that has no connection: credit has nobody to go to. */
        @Override
        public void credit(long items) {}

        @Override
        public void cancel() {
            cancelled = true;
            Sent now = sent;
            if (now != null) {
                now.cancel();
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
        Object decode(ByteBuf reply) {
            if (reply.isReadable()) {
                // the service has another method: the caller would take its result for a stream without items
                throw new RPCXException(
                        RPCXException.Code.PROTOCOL,
                        "a result of " + reply.readableBytes() + " bytes at the end of a stream (expected: none)");
            }
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
            Health.Outcome outcome = tellInstance(error);
            if (outcome != null) {
                method.route().counted(outcome, permit);
            }
        }

        /** @return what the end of the attempt says of the instance that had it; null if none had it */
        private Health.@Nullable Outcome tellInstance(@Nullable RPCXException error) {
            Sent ended = sent;
            if (ended == null) {
                return null;
            }
            Health.Outcome outcome = outcome(error, deadlineNanos);
            ended.slot.connection.address().ended(outcome, begunNanos(deadlineNanos));
            return outcome;
        }

        /** The call is over: whoever keeps its subscription keeps no connection. */
        private void letGo() {
            sent = null;
            wait = null;
            stream = null;
            upload = null;
            forgetArguments();
        }

        @Override
        void succeed(@Nullable Object value) {
            isOver = true;
            arrived();
            letGo();
            receiver.end(null);
        }

        @Override
        void endAnyway(@Nullable Object value, @Nullable RPCXException error) {
            isOver = true;
            letGo();
            receiver.end(error);
            // an attempt to send it again may have ended half way
            receiver.open();
        }

        @Override
        void fail(RPCXException error) {
            // nothing has been told but the subscription: its call may go another way as one that brings no stream
            if (!answered
                    && !cancelled
                    && encoded != null
                    && method.mayTryAgain(error, attempt, attempt, upload, null)) {
                // the next attempt may go elsewhere: if this one was a trial it is one no more
                tellInstance(error);
                synchronized (this) {
                    if (isSending) {
                        isLeft = true;
                        return;
                    }
                }
                sendAgain();
                return;
            }
            isOver = true;
            // a stream whose time is over after it has brought something has done what it was asked for
            if (!answered || error.code() != RPCXException.Code.DEADLINE_EXCEEDED) {
                count(error);
            }
            letGo();
            receiver.end(unkept == null ? OwnEnd.told(Health.named(error, method.route(), method)) : unkept);
        }
    }
}
