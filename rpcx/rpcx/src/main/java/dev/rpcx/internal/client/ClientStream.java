package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.RPCXException;
import dev.rpcx.internal.Given;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.StreamReceiver;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.Streams;
import dev.rpcx.internal.call.TimedContext;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** Publisher that a client's method returns if its result is a stream. Each subscriber makes its own call. */
public final class ClientStream implements Flow.Publisher<Object> {
    private static final RPCXException GIVEN_UP =
            RPCXException.refused(RPCXException.Code.CANCELLED, "the caller gave the call up");

    private final ClientSteps steps;
    private final Object[] arguments;
    private final Metadata metadata;
    private final @Nullable TimedContext maker = CurrentCall.get();

    public ClientStream(ClientSteps steps, Object[] arguments, Metadata metadata) {
        this.steps = steps;
        this.arguments = arguments;
        this.metadata = metadata;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Object> subscriber) {
        new Call(this).start(Given.notNull(subscriber, "subscriber", "who takes the items"));
    }

    /**
     * An attempt of a call, with the slot that it has. The methods do nothing to another call that has the slot later.
     */
    private record Sent(ClientCall slot, long serial, AtomicLong unsentCredit) implements StreamReceiver.CreditSink {
        @Override
        public void credit(long items) {
            if (Streams.accumulateCredit(unsentCredit, items)) {
                slot.connection.sendCredit(slot, serial, unsentCredit);
            }
        }

        void cancel() {
            slot.cancel(serial);
        }
    }

    private static final class Call extends AsyncCall implements StreamReceiver.Peer {
        private final StreamReceiver receiver;

        /**
         * Stream to which this call belongs. Null when the call has ended, so that a subscriber which keeps its
         * subscription does not keep the arguments in memory.
         */
        private @Nullable ClientStream stream;

        /** Latest attempt. Null if there is none, if it ended before anything was sent, or if the call has ended. */
        private volatile @Nullable Sent sent;

        private volatile boolean cancelled;

        /**
         * Attempts that have failed; null for none. Set before the latest attempt is sent. Read when that attempt has
         * ended, and by the thread that makes the next attempt.
         */
        private @Nullable Attempts earlier;

        /**
         * Stream that the latest attempt sends; null for none. Set before the latest attempt is sent. Read when that
         * attempt has ended, and by the thread that makes the next attempt.
         */
        private @Nullable StreamSender upload;

        // isSending and isRetryDue are guarded by this
        /** Whether a thread is sending an attempt of the call. The same thread then opens the receiver. */
        private boolean isSending;

        /**
         * Whether the attempt has ended unsent while a thread was sending it. That thread then makes another attempt.
         */
        private boolean isRetryDue;

        /**
         * Latest wait for a connection, which may have ended by now. Null if there is none, or if the call has ended.
         */
        private volatile Route.@Nullable Wait wait;

        /**
         * The arguments as they were when the call was made, encoded. Kept while the call waits for its first
         * connection, and from the end of an unsent attempt until the next one; otherwise null.
         */
        private @Nullable ByteBuf encoded;

        /** Charge for {@link #encoded}. */
        private Route.@Nullable WaitingBytes held;

        /** Error that says why the arguments could not be kept for the next attempt; null if there is no such error. */
        private @Nullable RPCXException unkept;

        private long deadlineNanos;
        private int key;
        private long permit = CircuitBreaker.PERMITTED;

        /** Whether the service has answered. Event loop only. */
        private boolean answered;

        /** Whether the call has ended. Event loop only. */
        private boolean isOver;

        Call(ClientStream stream) {
            super(stream.steps);
            this.stream = stream;
            receiver = new StreamReceiver(steps.reader.codec(), this);
        }

        void start(Flow.Subscriber<? super Object> subscriber) {
            ClientStream made = Objects.requireNonNull(stream);
            receiver.begin(subscriber);
            if (cancelled) {
                // The call was given up before it began. It asks for no permit, which might make it the trial of the
                // circuit.
                givenUp();
                return;
            }
            deadlineNanos = steps.deadline(made.maker);
            try {
                permit = steps.route.called();
                key = steps.method.key(made.arguments);
            } catch (Throwable e) {
                // An Error is caught too: the subscriber already has its subscription, and waits for an end.
                refused(e);
                return;
            }
            findConnection();
        }

        private void findConnection() {
            try {
                ClientConnection ready = steps.route.ready(key);
                if (ready != null && send(ready)) {
                    return;
                }
                keepArguments();
                Route.Wait begun = steps.route.await(key, deadlineNanos, steps.times, permit, (connected, failure) -> {
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

        /** Stores a wait that has begun, unless it has ended by now. A later wait of the call stays stored. */
        private synchronized void waitsFor(Route.Wait begun) {
            Route.Wait other = wait;
            if (other == null || other.isOver()) {
                wait = begun;
                if (begun.isOver()) {
                    wait = null;
                }
            }
        }

        /**
         * Keeps the arguments of a call that waits for its first connection, since the caller may change them from now
         * on.
         */
        private void keepArguments() {
            ClientStream of = stream;
            if (encoded == null && earlier == null && of != null) {
                ByteBuf made = steps.writer.encoded(of.arguments);
                hold(made.capacity());
                encoded = made;
            }
        }

        /**
         * Charges bytes of arguments. {@code held} is set before anything is charged: see {@link Route#waitingBytes}.
         */
        private void hold(int bytes) {
            Route.WaitingBytes taken = steps.route.waitingBytes();
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

        /** Keeps the arguments for another attempt, since the caller of a stream may change them. */
        @Override
        void beforeSlotRelease(ClientCall slot, RPCXException error) {
            if (answered || cancelled || !Attempts.isWorthAnother(earlier, steps, error, upload, null)) {
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

        /**
         * Ends the call with a failure of this side, without another attempt. The request may have been queued before
         * the failure.
         */
        private void refused(Throwable failure) {
            cancelled = true;
            // A subscriber that keeps its subscription must not keep a connection in memory that is established later.
            wait = null;
            stream = null;
            forgetArguments();
            steps.route.releasePermit(permit);
            // The receiver is ended directly: the stack may be nearly exhausted.
            receiver.end(failure instanceof LocalFailure own ? LocalFailure.asPublicException(own) : failure);
            receiver.open();
        }

        /**
         * Ends a call of which nothing has been sent or will be sent. A subscriber that has cancelled gets no signal.
         * But a subscriber that has broken a rule of Reactive Streams, and whose call was cancelled for that, still
         * gets one.
         */
        private void givenUp() {
            refused(GIVEN_UP);
        }

        /**
         * Takes a slot and writes the request into it.
         *
         * @return null if other calls have filled the connection, and the call has to wait
         */
        private @Nullable ClientCall prepare(ClientConnection on, ClientStream made) {
            ClientCall slot = steps.writer.prepareOrWait(
                    on, key, made.arguments, encoded, made.metadata, deadlineNanos, on.nanoTime());
            if (slot == null) {
                synchronized (this) {
                    isSending = false;
                }
            }
            return slot;
        }

        /**
         * Sends the call on a connection.
         *
         * @return false if other calls have filled the connection, and the call has to wait; true if the call has been
         *     sent or has ended
         */
        private boolean send(ClientConnection on) {
            // Read once: when the request has been queued, the event loop may end the call and clear the field.
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
                    upload = items;
                    sent = now;
                    copyFromSlot(slot);
                    // Dropped before the call is sent. After that, the event loop may keep the arguments for another
                    // attempt.
                    forgetArguments();
                    slot.sendAsync(this);
                    isHeld = false;
                } finally {
                    if (isHeld) {
                        // There are only stores here: if the stack is exhausted, no method can be called.
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
                again = isRetryDue;
                isRetryDue = false;
            }
            if (again) {
                sendAgain();
            }
            return true;
        }

        /** Does what has to be done after a request has been queued. */
        private void begin(Sent now, @Nullable StreamSender items, ClientStream made) {
            RequestWriter.subscribe(items, made.arguments);
            if (cancelled) {
                now.cancel();
            }
            receiver.open(now);
            ClientConnection used = now.slot.connection;
            if (permit != CircuitBreaker.PERMITTED || used.address().health().isUnproven()) {
                used.inLoopOrHere(() -> lookAtTrial(now));
            }
        }

        /**
         * Ends a call for which {@code begin} has failed, for example for lack of memory. CANCEL is sent to the server,
         * and the subscriber then gets the failure. The methods that are called here may fail too.
         */
        private void failedBehind(Sent now, Throwable failure) {
            cancelled = true;
            receiver.breakOff(failure);
            boolean isOver;
            synchronized (this) {
                isSending = false;
                isOver = isRetryDue;
                isRetryDue = false;
            }
            if (isOver) {
                // nothing of the attempt has been sent, and nobody else ends the call
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
                // CANCEL may not have been sent, so the receiver does not wait for the server.
                receiver.end(failure);
            }
        }

        /**
         * Decides a trial, of the circuit or of an instance. The trial is a call whose result is a stream, which may
         * have no items for a long time. So this method asks the server for a sign of life, and checks after
         * {@code PAUSE_NANOS} whether anything has arrived on the connection. If so, the server counts as having
         * answered; otherwise the method asks again. Event loop only.
         */
        private void lookAtTrial(Sent trial) {
            ClientConnection on = trial.slot.connection;
            int before = on.reads();
            on.askForSign();
            steps.route.timer(
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

        /** Makes another attempt, since nothing of the latest one has been sent. */
        private void sendAgain() {
            sent = null;
            receiver.takeBack();
            findConnection();
        }

        /** Does nothing: without a connection there is no peer to which credit could be sent. */
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
                // the server's method returns a result and not a stream; the caller would see a stream without items
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
            Health.Outcome outcome = recordOutcome(error);
            if (outcome != null) {
                steps.route.recordOutcome(outcome, permit);
            }
        }

        /**
         * Records the end of the latest attempt at the instance that had it.
         *
         * @return what the end says of that instance; null if no instance had the attempt
         */
        private Health.@Nullable Outcome recordOutcome(@Nullable RPCXException error) {
            Sent last = sent;
            return last == null ? null : ended(earlier, last.slot.connection.address(), error, deadlineNanos);
        }

        /**
         * Drops the references of a call that has ended, so that a kept subscription does not keep a connection in
         * memory.
         */
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
        void tellCaller(@Nullable Object value, @Nullable RPCXException error) {
            isOver = true;
            letGo();
            receiver.end(error);
            // only an open receiver passes on the last signal; the attempt may have failed before it opened the
            // receiver
            receiver.open();
        }

        @Override
        void fail(RPCXException error) {
            // Before the service has answered, the subscriber has got only its subscription, so another attempt is
            // possible.
            Attempts all = answered || cancelled || encoded == null
                    ? null
                    : Attempts.next(earlier, steps, error, upload, null);
            if (all != null) {
                earlier = all;
                // If the attempt was a trial of its instance, the trial ends here.
                recordOutcome(error);
                synchronized (this) {
                    if (isSending) {
                        isRetryDue = true;
                        return;
                    }
                }
                sendAgain();
                return;
            }
            isOver = true;
            // If the service has answered, a deadline that has passed is no failure of the service.
            if (!answered || error.code() != RPCXException.Code.DEADLINE_EXCEEDED) {
                count(error);
            }
            letGo();
            receiver.end(
                    unkept == null
                            ? Attempts.callerError(earlier, Health.named(error, steps.route, steps.method))
                            : unkept);
        }
    }
}
