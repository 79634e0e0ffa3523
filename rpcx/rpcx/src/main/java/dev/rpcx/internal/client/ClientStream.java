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

/** The publisher that a client's method returns if its result is a stream. Each subscriber starts a call of its own. */
public final class ClientStream implements Flow.Publisher<Object> {
    private static final RPCXException GIVEN_UP =
            RPCXException.refused(RPCXException.Code.CANCELLED, ClientCallErrors.GIVEN_UP);

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
     * An attempt that has been given a slot of a connection. If another call has the slot by now, the methods of this
     * record do nothing. Any thread adds to {@code unsentCredit}, and the event loop takes the sum:
     * {@link Streams#accumulateCredit} describes how.
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
         * The publisher whose subscriber started this call; null when the call has ended. The field is cleared because
         * a subscriber that keeps its subscription would otherwise keep the arguments in memory.
         */
        private @Nullable ClientStream stream;

        /**
         * The latest attempt; null before the first attempt, after an attempt of which nothing was sent, and when the
         * call has ended. Stored by the thread that sends an attempt, cleared by that thread or the event loop, and
         * read by any thread that cancels.
         */
        private volatile @Nullable Sent sent;

        /**
         * Whether the call has been cancelled, or has been ended by this client. Three kinds of thread each store one
         * field before they read another:
         *
         * <ul>
         *   <li>A thread that cancels sets this field, and then reads {@code sent}, or {@code wait} if {@code sent} is
         *       null.
         *   <li>The thread that sends an attempt stores {@code sent}, and then reads this field.
         *   <li>The thread that makes the call wait stores {@code wait}, and then reads this field.
         * </ul>
         *
         * <p>So either the thread that cancels finds the attempt or the wait, or the other thread finds that the call
         * is cancelled. The thread that finds this cancels the attempt or ends the wait. In any other order, a
         * cancelled call could go on.
         */
        private volatile boolean cancelled;

        /**
         * The attempts that have failed; null if none has failed. No lock is needed, since the attempts of a call come
         * one after another:
         *
         * <ul>
         *   <li>The thread on which an attempt ends sets the field before the next attempt begins.
         *   <li>The thread that makes the next attempt reads the field before it sends the attempt.
         *   <li>The event loop uses the field only after the attempt has been answered or has ended.
         * </ul>
         */
        private @Nullable Attempts earlier;

        /**
         * Sender of the stream that is an argument of the call, in the latest attempt; null if there is none.
         * No lock is needed: the thread that sends an attempt sets this field before it sends, and the event loop uses
         * this field only after that attempt has ended.
         */
        private @Nullable StreamSender upload;

        // This object's lock guards isSending and isRetryDue.
        /**
         * Whether a thread is sending an attempt of the call. The next attempt has to wait until that thread has
         * finished.
         */
        private boolean isSending;

        /**
         * Whether another attempt is due, because an attempt has failed while a thread was still sending it. That
         * thread makes the next attempt, or ends the call.
         */
        private boolean isRetryDue;

        /**
         * This call's wait for a connection, which {@link #cancel} has to end; null if there is none. The wait can be
         * over already. Stored by the thread that makes the call wait, cleared by any thread that ends the call, and
         * read by any thread that cancels.
         */
        private volatile Route.@Nullable Wait wait;

        /**
         * The encoded arguments for the next attempt; null if none are kept. If the call waits for a connection before
         * anything is sent, the next attempt is the first one. The arguments are kept in encoded form, since the caller
         * is free to change the original arguments.
         */
        private @Nullable ByteBuf encoded;

        /** The charge for the bytes of {@link #encoded}; null if nothing is charged. */
        private Route.@Nullable WaitingBytes held;

        /**
         * The error for the subscriber if there was no room to keep the arguments for another attempt; otherwise null.
         */
        private @Nullable RPCXException unkept;

        private long deadlineNanos;
        private int key;
        private long permit = CircuitBreaker.PERMITTED;

        /**
         * Whether the service has answered this call. If the call is a trial, anything that arrives on the connection
         * during the trial counts as an answer. Used only on the event loop.
         */
        private boolean answered;

        /**
         * Whether the call has ended because an attempt has ended. Stays false if {@link #refused} ends the call. Used
         * only on the event loop.
         */
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
                // The subscriber cancelled the call before it began. Such a call must not ask for a permit, which might
                // be the only one that the circuit breaker gives out to test the service.
                givenUp();
                return;
            }
            deadlineNanos = steps.deadline(made.maker);
            try {
                permit = steps.route.called();
                key = steps.method.key(made.arguments);
            } catch (Throwable e) {
                // Errors are caught too: the subscriber already has its subscription, and waits for an end.
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
         * Stores {@code begun}, a wait for a connection, so that {@link #cancel} can end this wait. Stores nothing if
         * {@code begun} has already ended, or if the wait that is stored now has not ended.
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

        /**
         * Encodes the arguments before the call first waits for a connection. While the call waits, the caller is free
         * to change the arguments.
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
         * Charges the client's memory account for {@code bytes} of encoded arguments. The object that releases the
         * charge is stored in {@code held} before the bytes are charged. In the other order, an error in between would
         * leave the bytes charged: see {@link Route#waitingBytes}.
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
         * If another attempt makes sense, copies the encoded arguments out of the slot, and keeps the copy for the next
         * attempt. That attempt cannot encode the original arguments again, since the caller is free to change them.
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
         * Ends the call with an error that this client has found, without another attempt. The request can already be
         * queued for sending.
         */
        private void refused(Throwable failure) {
            cancelled = true;
            // If a connection is established later, a subscriber that keeps its subscription must not keep that
            // connection in memory.
            wait = null;
            stream = null;
            forgetArguments();
            steps.route.releasePermit(permit);
            // The receiver is ended with as few calls as possible, since the stack might be nearly exhausted.
            receiver.end(failure instanceof LocalFailure own ? LocalFailure.asPublicException(own) : failure);
            receiver.open();
        }

        /**
         * Ends a call that was cancelled before anything was sent. A subscriber that has cancelled gets no signal. If
         * the call was cancelled because the subscriber broke a rule of Reactive Streams, the subscriber still gets an
         * error.
         */
        private void givenUp() {
            refused(GIVEN_UP);
        }

        /**
         * Takes a slot of a connection and writes the request into the slot.
         *
         * @return the slot; null if other calls have filled the connection, and the call has to wait
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
         * @return true if the call has been sent or has ended; false if other calls have filled the connection, and the
         *     call has to wait
         */
        private boolean send(ClientConnection on) {
            // The field is read only once, since the event loop clears it if the call ends while this thread is
            // sending.
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
                    // The kept arguments are dropped before the call is sent. After sending, the event loop can keep
                    // arguments anew for another attempt, and dropping those would lose them.
                    forgetArguments();
                    slot.sendAsync(this);
                    isHeld = false;
                } finally {
                    if (isHeld) {
                        // If the stack is exhausted, no method can be called here. So this thread only sets two fields,
                        // which make the event loop release the slot. Their order matters, see CallSlots.hasOrphans.
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

        /**
         * Subscribes to the stream that the call sends, and opens the receiver of the result's items. Cancels the call
         * if the subscriber has cancelled its subscription meanwhile. If the call is a trial, also begins to check
         * whether the server is alive. Called after the request has been sent or has been queued for sending.
         */
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
         * Ends a call for which {@link #begin} has thrown, for example because memory ran out. The subscriber gets the
         * failure. If the server knows the call, this method asks the server to cancel the call. If another exception
         * is thrown on the way, the stream ends at once, without waiting for the server.
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
                // The attempt ended before anything was sent, so nobody but this thread ends the call.
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
                // The server might not have been asked to cancel, so the receiver does not wait for the server.
                receiver.end(failure);
            }
        }

        /**
         * Checks whether the server of a trial call is alive. A trial is a single call that tests an instance or a
         * service after failures. The stream of such a call can have no items for a long time. So this method asks the
         * server for a sign of life, every {@link CircuitBreaker#PAUSE_NANOS}, until anything arrives on the
         * connection. The server then counts as having answered. The checks also stop when the attempt has ended.
         * Called only on the event loop.
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

        /** Makes another attempt after an attempt of which nothing was sent. */
        private void sendAgain() {
            sent = null;
            receiver.takeBack();
            findConnection();
        }

        /**
         * Does nothing. The {@link #receiver} sends credit to this object only after the call has failed or has ended,
         * and otherwise to a {@link Sent}.
         */
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
                // The server's method returns a single result and not a stream. Without this error, the caller would
                // see an empty stream.
                throw ClientCallErrors.resultOfStream(reply.readableBytes());
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
         * Records what the latest attempt says about the health of the called instance.
         *
         * @param error error with which the attempt has ended; null if the attempt has been answered
         * @return what the attempt says about the health of the instance; null if no instance was called
         */
        private Health.@Nullable Outcome recordOutcome(@Nullable RPCXException error) {
            Sent last = sent;
            return last == null ? null : ended(earlier, last.slot.connection.address(), error, deadlineNanos);
        }

        /**
         * Clears the references of a call that has ended. Otherwise a subscriber that keeps its subscription would keep
         * a connection in memory.
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
            // Only an open receiver passes on the end of the stream, and the attempt could have failed before the
            // receiver was opened.
            receiver.open();
        }

        @Override
        void fail(RPCXException error) {
            // Until the service answers, the subscriber has got only its subscription, so another attempt is possible.
            Attempts all = answered || cancelled || encoded == null
                    ? null
                    : Attempts.next(earlier, steps, error, upload, null);
            if (all != null) {
                earlier = all;
                // If the failed attempt was the trial of an instance, that trial ends here.
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
            // A service that has answered is not blamed if the stream goes on until the call's deadline.
            if (!answered || error.code() != RPCXException.Code.DEADLINE_EXCEEDED) {
                count(error);
            }
            letGo();
            receiver.end(
                    unkept == null
                            ? steps.told(Attempts.callerError(earlier, Health.named(error, steps.route, steps.method)))
                            : unkept);
        }
    }
}
