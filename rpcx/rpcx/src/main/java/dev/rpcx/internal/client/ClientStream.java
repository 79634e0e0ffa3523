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

/** Publisher that a client's method with a stream as its result returns: each subscriber makes a call of its own. */
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
     * An attempt at a call, with the slot that it has. Once the attempt is over, nothing done here reaches another call
     * in that slot.
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
         * Stream that this is a call of; null once the call is over, so that whoever keeps its subscription keeps no
         * arguments.
         */
        private @Nullable ClientStream stream;

        /** Latest attempt; null if none is sent, if the latest ended before a byte left, or once the call is over. */
        private volatile @Nullable Sent sent;

        private volatile boolean cancelled;

        // Attempts that have failed, null for none, and the stream that the latest one sends. Both are set before that
        // one is sent. They are read by whoever makes the next attempt, and once the latest one has ended.
        private @Nullable Attempts earlier;
        private @Nullable StreamSender upload;

        // guarded by this
        /** A thread is sending the call, and telling the receiver where its credit goes. */
        private boolean isSending;

        /**
         * The attempt has ended meanwhile, and nothing of it has left: the thread that is sending makes another one.
         */
        private boolean isRetryDue;

        /** Latest wait for a connection, which may be over by now; null if there is none, or the call is over. */
        private volatile Route.@Nullable Wait wait;

        /**
         * The arguments, encoded when the call was made. They are kept while the call waits for a connection, and from
         * an attempt of which nothing has left to the next one; null otherwise.
         */
        private @Nullable ByteBuf encoded;

        /** Charge for {@link #encoded}. */
        private Route.@Nullable WaitingBytes held;

        /** Why the arguments could not be kept for the next attempt; null if they were kept or did not have to be. */
        private @Nullable RPCXException unkept;

        private long deadlineNanos;
        private int key;
        private long permit = CircuitBreaker.PERMITTED;

        /** The service has answered; event loop only. */
        private boolean answered;

        /** The call is over; event loop only. */
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
                // Given up before it began: no permit is asked for, since a trial of the circuit is for a call that can
                // have an end.
                givenUp();
                return;
            }
            deadlineNanos = steps.deadline(made.maker);
            try {
                permit = steps.route.called();
                key = steps.method.key(made.arguments);
            } catch (Throwable e) {
                // Errors too: the subscriber has its subscription already and waits for an end
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

        /**
         * Stores a wait that has begun. It may be over already, and the call be in another wait, which then stays, or
         * at its end.
         */
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
            if (encoded == null && earlier == null && of != null) {
                ByteBuf made = steps.writer.encoded(of.arguments);
                hold(made.capacity());
                encoded = made;
            }
        }

        /**
         * Charges bytes of arguments. The holder of the charge is stored before anything is charged: see
         * {@link Route#waitingBytes}.
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

        /**
         * Keeps the arguments for another attempt, since the caller of a stream cannot know how long they must not
         * change.
         */
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
         * Ends the call by a failure of this side. If its request is queued all the same, since the thread failed after
         * queueing it, the call has no further attempt.
         */
        private void refused(Throwable failure) {
            cancelled = true;
            // so that whoever keeps the subscription keeps no connection that comes later
            wait = null;
            stream = null;
            forgetArguments();
            steps.route.releasePermit(permit);
            // called directly, with no stack frames but those of the end itself: the stack may be nearly exhausted
            receiver.end(failure instanceof LocalFailure own ? LocalFailure.asPublicException(own) : failure);
            receiver.open();
        }

        /**
         * Ends a call of which nothing has been sent or will be. Only a subscriber that broke a rule still waits for a
         * signal.
         */
        private void givenUp() {
            refused(GIVEN_UP);
        }

        /** @return null if other calls have filled the connection, and the call has to wait */
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
         * @return false if other calls have filled the connection, and the call has to wait; true also if it has ended
         */
        private boolean send(ClientConnection on) {
            // read once, for what follows the request too: by then the event loop may have ended the call and cleared
            // the field
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
                    // before the call is sent: from then on the event loop may keep the arguments for another attempt
                    forgetArguments();
                    slot.sendAsync(this);
                    isHeld = false;
                } finally {
                    if (isHeld) {
                        // stores only, as in BlockingCall: where the stack is exhausted no method can be called
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

        /** Does what has to follow a request that has been queued. */
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
         * Ends a call for which {@code begin} has failed, as for want of memory. The server is sent CANCEL, and the
         * subscriber is told of the failure when the call ends by that, on the event loop. What is called here may fail
         * as well.
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
                // nothing of the attempt has left, and nobody else ends the call
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
                // the server may not hear of the cancellation before the call's time is over
                receiver.end(failure);
            }
        }

        /**
         * Decides a trial, of the circuit or of an instance, by a stream that may bring nothing for long: a server that
         * is heard of after a pause, and has not refused the call until then, counts as having answered. Event loop
         * only.
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

        /** Makes another attempt, since nothing of the latest one has left. */
        private void sendAgain() {
            sent = null;
            receiver.takeBack();
            findConnection();
        }

        /** Does nothing: a call that has no connection has no peer for its credit. */
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
                // the server has another method here, whose result the caller would take for a stream without items
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

        /** @return what the end of the latest attempt says of the instance that had it; null if none had it */
        private Health.@Nullable Outcome recordOutcome(@Nullable RPCXException error) {
            Sent last = sent;
            return last == null ? null : ended(earlier, last.slot.connection.address(), error, deadlineNanos);
        }

        /** Drops what a call that is over refers to, so that whoever keeps its subscription keeps no connection. */
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
            // another attempt may have failed half way, before it opened the receiver
            receiver.open();
        }

        @Override
        void fail(RPCXException error) {
            // The subscriber has had nothing but its subscription, so the call may have another attempt, as a call
            // without a stream may.
            Attempts all = answered || cancelled || encoded == null
                    ? null
                    : Attempts.next(earlier, steps, error, upload, null);
            if (all != null) {
                earlier = all;
                // the next attempt may go to another instance: if this one was a trial it is none any more
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
            // a stream that has brought something before its time was over has done what it was asked for
            if (!answered || error.code() != RPCXException.Code.DEADLINE_EXCEEDED) {
                count(error);
            }
            letGo();
            receiver.end(
                    unkept == null ? Attempts.told(earlier, Health.named(error, steps.route, steps.method)) : unkept);
        }
    }
}
