package dev.rpcx.internal.client;

import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
import dev.rpcx.internal.ThrowableText;
import dev.rpcx.internal.Varint;
import dev.rpcx.internal.call.CallFuture;
import dev.rpcx.internal.call.CurrentCall;
import dev.rpcx.internal.call.MethodShape;
import dev.rpcx.internal.call.StreamSender;
import dev.rpcx.internal.call.TimedContext;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.wire.MetadataFields;
import dev.rpcx.internal.wire.MethodDictionary;
import dev.rpcx.internal.wire.Outbound;
import dev.rpcx.internal.wire.Wire;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * A method of a client's interface, with all that reflection says of it, looked up once. Its calls start here, on any
 * thread.
 */
public final class ClientMethod {
    /** How the caller waits for the result. */
    public enum Kind {
        BLOCKING,
        ASYNC,
        ONE_WAY,
        STREAM
    }

    /**
     * An attempt that finds its connection closing sends nothing, and its call goes to another connection, unless the
     * call has had this many attempts. One attempt asks at most this many instances for a slot.
     */
    private static final int MAX_ATTEMPTS = 8;

    /** Max attempts of one call that have left this side, including the first one. */
    static final int MAX_SENT = 3;

    private static final Object[] NO_ARGUMENTS = {};

    /** Error of a call whose result cannot be read, where there is no memory to make a more precise one. */
    static final RPCXException UNREADABLE =
            LocalFailure.noRoom("no memory was left for the result", RPCXException.Executed.EXECUTED);

    /**
     * Index of the method in the tables of connections: the same for all methods of this client's proxies that call the
     * same remote method with the same shape.
     */
    final int index;

    final Kind kind;
    private final String service;
    private final String name;
    private final byte[] serviceBytes;
    private final byte[] nameBytes;
    private final Codec<Object[]> parameters;
    private final Codec<Object> result;
    private final int shape;
    private final long timeoutNanos;
    private final AnswerTimes times;
    private final Route route;

    /** Computes the routing key from the argument that chooses the instance; null if no argument does. */
    private final @Nullable RouteKey routedBy;

    private final boolean idempotent;
    private final long hedgeNanos;

    /** Codec of the items of the stream that the method takes; null if it takes none. */
    private final @Nullable Codec<Object> items;

    public ClientMethod(
            int index,
            Kind kind,
            String service,
            String name,
            Codec<Object[]> parameters,
            Codec<Object> result,
            int shape,
            long timeoutNanos,
            Route route,
            @Nullable RouteKey routedBy,
            @Nullable Method marked,
            @Nullable Codec<Object> items) {
        this.index = index;
        this.kind = kind;
        this.service = service;
        this.name = name;
        this.serviceBytes = service.getBytes(StandardCharsets.UTF_8);
        this.nameBytes = name.getBytes(StandardCharsets.UTF_8);
        this.parameters = parameters;
        this.result = result;
        this.shape = shape;
        this.timeoutNanos = timeoutNanos;
        this.times = new AnswerTimes(timeoutNanos);
        this.route = route;
        this.routedBy = routedBy;
        this.idempotent = marked != null && marked.idempotent();
        this.hedgeNanos = marked == null ? 0 : TimeUnit.MILLISECONDS.toNanos(marked.hedgeMillis());
        this.items = items;
    }

    Codec<Object> result() {
        return result;
    }

    Route route() {
        return route;
    }

    AnswerTimes times() {
        return times;
    }

    /** Key by which the instance is chosen; 0 if no argument decides. */
    int key(Object[] arguments) {
        if (routedBy == null) {
            return 0;
        }
        try {
            return routedBy.of(arguments);
        } catch (CodecException e) {
            throw unusable(e);
        }
    }

    /**
     * @param maker context in which the method that returns the stream was called, null if there was none; the
     *     stream's subscribers come later, and get no more time than that context has
     */
    long deadline(@Nullable TimedContext maker) {
        return TimedContext.deadlineOf(timeoutNanos, route.ticker(), maker);
    }

    /**
     * Difference of the shapes that keeps this side and the server from reading each other's bodies; null if there is
     * none.
     */
    @Nullable
    String difference(int serversShape) {
        return MethodShape.difference(shape, serversShape, kind != Kind.ONE_WAY);
    }

    @Override
    public String toString() {
        return service + "/" + name;
    }

    String publishedName() {
        return MethodDictionary.key(service, name);
    }

    public @Nullable Object call(Object @Nullable [] arguments, Metadata metadata) {
        Object[] given = arguments == null ? NO_ARGUMENTS : items == null ? arguments : bound(arguments);
        if (kind == Kind.STREAM) {
            return new ClientStream(this, given, metadata);
        }
        long now = route.ticker().nanoTime();
        long deadline = TimedContext.deadlineOf(timeoutNanos, now);
        if (kind == Kind.BLOCKING) {
            Route.refuseInterrupted();
        }
        if (hedgeNanos > 0) {
            if (kind == Kind.BLOCKING) {
                Route.refuseBlocking();
            }
            CallFuture<@Nullable Object> first = new Hedge(this, given, metadata, deadline).start(now, hedgeNanos);
            return kind == Kind.BLOCKING ? route.await(first, deadline) : first;
        }
        return switch (kind) {
            case BLOCKING -> callBlocking(given, metadata, deadline);
            case ASYNC -> new Async(this, given, metadata, deadline, null, null).start(now);
            case ONE_WAY -> {
                failAtOnce(new Async(this, given, metadata, deadline, null, null).start(now));
                yield null;
            }
            case STREAM -> throw new AssertionError(kind);
        };
    }

    @SuppressWarnings("unchecked") // the proxied method declares this type
    private static Object[] bound(@Nullable Object[] arguments) {
        Flow.Publisher<Object> given = (Flow.Publisher<Object>) arguments[0];
        return given == null ? arguments : new Object[] {new BoundPublisher(given, CurrentCall.get())};
    }

    /**
     * Throws the failure of a one-way call that has failed by the time it has been made, since nobody looks at its
     * future.
     */
    static void failAtOnce(CallFuture<@Nullable Object> made) {
        if (!made.isCompletedExceptionally()) {
            return;
        }
        try {
            made.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException failure ? failure : e;
        }
    }

    private @Nullable Object callBlocking(Object[] arguments, Metadata metadata, long deadline) {
        int key = key(arguments);
        long permit = route.called();
        try {
            return callBlocking(arguments, metadata, deadline, key, permit);
        } finally {
            route.releasePermit(permit);
        }
    }

    private @Nullable Object callBlocking(Object[] arguments, Metadata metadata, long deadline, int key, long permit) {
        boolean mayHaveRun = false;
        ClientAddress refusing = null;
        ClientAddress avoided = null;
        int sent = 0;
        for (int attempt = 1; ; attempt++) {
            ClientCall call;
            try {
                call = awaitSlot(key, avoided, arguments, metadata, deadline, permit);
            } catch (RPCXException unsent) {
                throw callerError(unsent, mayHaveRun);
            }
            long serial = call.serial;
            ClientConnection connection = call.connection;
            RPCXException error;
            Health.Outcome outcome;
            StreamSender upload = call.upload;
            boolean isHeld = true;
            try {
                if (upload != null) {
                    endTrialOnceTaken(call, upload, deadline, permit);
                }
                call.sendBlocking();
                if (upload != null) {
                    subscribe(upload, arguments);
                }
                error = call.await();
                outcome = outcome(error, call.givenNanos, deadline, serial);
                connection.address().ended(outcome, deadline - call.givenNanos);
                if (refusing != null) {
                    compare(refusing, connection.address(), outcome);
                }
                if (error == null) {
                    route.recordOutcome(outcome, permit);
                    try {
                        return decode(call.body);
                    } finally {
                        call.callerDone();
                        isHeld = false;
                    }
                }
                call.callerDone();
                isHeld = false;
            } finally {
                if (isHeld) {
                    // stores only: where the stack is exhausted no method can be called
                    call.orphan = serial;
                    connection.slots.hasOrphans = true;
                }
            }
            sent += hasLeft(error) ? 1 : 0;
            if (!mayTryAgain(error, attempt, sent, upload, connection.address())) {
                route.recordOutcome(outcome, permit);
                throw callerError(Health.named(error, connection.address(), this), mayHaveRun);
            }
            mayHaveRun |= error.executed() != RPCXException.Executed.NOT_EXECUTED;
            if (hasLeft(error)) {
                refusing = isRefusal(error) ? connection.address() : null;
                avoided = connection.address();
            }
        }
    }

    /**
     * Error that the caller of a failed call is told.
     *
     * @param mayHaveRun an earlier attempt of the call may have been executed: the error then never says NOT_EXECUTED
     */
    private static RPCXException callerError(RPCXException end, boolean mayHaveRun) {
        RPCXException error = LocalFailure.asPublicException(end);
        return mayHaveRun && error.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(error.code(), error.getMessage(), RPCXException.Executed.MAYBE, error)
                : error;
    }

    /**
     * Failure that the caller is told of a call that {@code end} has ended: an RPCXException as above, anything else
     * unchanged.
     */
    static Throwable callerError(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? callerError(known, mayHaveRun) : end;
    }

    /**
     * Waits for a connection and takes a slot there. Where other calls fill the connection first, waits for another
     * one.
     */
    private ClientCall awaitSlot(
            int key,
            @Nullable ClientAddress avoidedFirst,
            Object[] arguments,
            Metadata metadata,
            long deadline,
            long permit) {
        ClientConnection on = avoidedFirst == null ? null : route.readyBeside(List.of(avoidedFirst));
        while (true) {
            if (on == null) {
                on = route.await(key, deadline, times, permit);
            }
            ClientCall call = prepareOrWait(on, key, arguments, null, metadata, deadline, on.nanoTime());
            if (call != null) {
                return call;
            }
            // the avoided instance may be the only one with room, so the next choice is among all instances
            on = null;
        }
    }

    /**
     * As {@link #prepare}. Where other calls have filled the connection since it was chosen, another one is chosen.
     * Choosing a connection may take the only trial of its instance, so a chosen connection is used or waited for here,
     * and no caller chooses one only to look at it.
     *
     * @return null if no other connection is ready yet, and the call has to wait for one
     * @throws RPCXException if no connection takes the call, or all are full
     */
    @Nullable
    ClientCall prepareOrWait(
            ClientConnection chosen,
            int key,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long begun) {
        ClientConnection on = chosen;
        long now = begun;
        while (true) {
            try {
                return prepare(on, arguments, encoded, metadata, deadline, now);
            } catch (RPCXException refused) {
                if (!LocalFailure.is(LocalFailure.Why.FULL, refused)
                        || deadline - route.ticker().nanoTime() <= 0) {
                    throw refused;
                }
                ClientConnection next = route.ready(key);
                if (next == null) {
                    return null;
                }
                if (next.isFull()) {
                    throw refused;
                }
                on = next;
                now = on.nanoTime();
            }
        }
    }

    /**
     * Whether a byte of the attempt may have left. If so, the next attempt avoids the instance of this one, which could
     * not or would not take the call, where there is another. An attempt of which nothing has left says nothing of its
     * instance: one that only closes its connection may have the next attempt.
     */
    private static boolean hasLeft(RPCXException error) {
        return !LocalFailure.is(LocalFailure.Why.NOT_SENT, error);
    }

    /**
     * What the end of a call says of the instance that had it.
     *
     * @param error null for success
     * @param givenNanos time left to the call when it was sent
     * @param serial number of this use of the call's slot
     */
    Health.Outcome outcome(@Nullable RPCXException error, long givenNanos, long deadlineNanos, long serial) {
        if (error != null) {
            return Health.Outcome.of(
                    error, times, givenNanos, deadlineNanos - route.ticker().nanoTime());
        }
        if (times.isSampled(serial)) {
            long now = route.ticker().nanoTime();
            times.answered(givenNanos - (deadlineNanos - now), now);
        }
        return Health.Outcome.ANSWERED;
    }

    private static boolean isRefusal(RPCXException error) {
        return Health.Outcome.isRefusal(error);
    }

    /**
     * A call that one instance refuses and another one takes counts as failed at the first; a call that both refuse
     * does not.
     */
    private void compare(ClientAddress refusing, ClientAddress other, Health.Outcome outcome) {
        if (refusing != other && outcome.isAnswer()) {
            route.refusals(index).giveBack();
            refusing.refused();
        }
    }

    /**
     * Has the first credit from the server end a trial. A call that takes a stream may last for days; where it is a
     * trial, of the circuit or of an instance, the server counts as having answered once it asks for items, which only
     * a handler that has begun does. Called before the call is sent.
     */
    private void endTrialOnceTaken(ClientCall call, StreamSender upload, long deadline, long permit) {
        ClientAddress used = call.connection.address();
        long begun = deadline - call.givenNanos;
        if (permit != CircuitBreaker.PERMITTED || used.health().isUnproven()) {
            upload.onFirstCredit(() -> {
                used.ended(Health.Outcome.ANSWERED, begun);
                if (permit != CircuitBreaker.PERMITTED) {
                    route.recordOutcome(Health.Outcome.ANSWERED, permit);
                }
            });
        }
    }

    /**
     * Whether to make another attempt after one that has failed. Spends from the budgets what that attempt costs.
     *
     * @param attempt number of attempts so far, including those of which nothing has left
     * @param sent number of attempts that have left
     * @param upload stream that the attempt was to send to the server; null for none
     * @param used instance that had the attempt; null if none had
     */
    public boolean mayTryAgain(
            RPCXException error, int attempt, int sent, @Nullable StreamSender upload, @Nullable ClientAddress used) {
        if (!isWorthAnother(error, attempt, sent, upload, used)) {
            return false;
        }
        if (!hasLeft(error)) {
            return true;
        }
        if (isRefusal(error)) {
            // The refusing instance would refuse again, so the call needs another one. The budget is asked first, since
            // it bounds how often all instances are looked at.
            return route.refusals(index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /** The part of {@link #mayTryAgain} that does not depend on budgets: asking spends nothing. */
    boolean isWorthAnother(
            RPCXException error, int attempt, int sent, @Nullable StreamSender upload, @Nullable ClientAddress used) {
        if (!hasLeft(error)) {
            // This side knows that nothing has left, so the attempt has cost no server anything. But a publisher is
            // subscribed to only once.
            return attempt < MAX_ATTEMPTS && (upload == null || !upload.hasPublisher());
        }
        if (items != null || kind == Kind.STREAM) {
            return false;
        }
        boolean executed = error.executed() != RPCXException.Executed.NOT_EXECUTED;
        boolean overloaded = error.code() == RPCXException.Code.OVERLOADED;
        if (isRefusal(error)) {
            return sent == 1 && route.hasOthers(used);
        }
        if (error.code() != RPCXException.Code.UNAVAILABLE && !overloaded || LocalFailure.isNoRoom(error)) {
            return false;
        }
        return (idempotent || !executed) && (!overloaded || route.hasOthers(used)) && sent < MAX_SENT;
    }

    /**
     * Takes a slot and writes the request into it: on the given connection, or on one of another instance if the server
     * of this one takes no such call, or no more calls. Nothing has left of a call that this side refuses, so asking
     * another instance costs no server anything, and no retry. The returned slot belongs to the caller, who has no
     * other way to get one.
     *
     * @param encoded arguments encoded when the call was made; null to encode them now
     * @param now time at which this thread began this attempt
     * @throws RPCXException if no connection takes the call; the reason is that of the given connection
     */
    public ClientCall prepare(
            ClientConnection on,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now) {
        try {
            return prepareOn(on, arguments, encoded, metadata, deadline, now, List.of());
        } catch (RPCXException refused) {
            if (!(refused instanceof LocalFailure)) {
                throw refused;
            }
            return prepareElsewhere(on, refused, arguments, encoded, metadata, deadline);
        }
    }

    private ClientCall prepareElsewhere(
            ClientConnection on,
            RPCXException first,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline) {
        List<ClientAddress> asked = new ArrayList<>(MAX_ATTEMPTS);
        List<ClientAddress> unfit = new ArrayList<>(MAX_ATTEMPTS);
        ClientConnection last = on;
        RPCXException refused = first;
        while (true) {
            asked.add(last.address());
            if (LocalFailure.is(LocalFailure.Why.UNFIT, refused)) {
                unfit.add(last.address());
            }
            ClientConnection next = asked.size() < MAX_ATTEMPTS ? route.readyBeside(asked) : null;
            if (next == null) {
                throw first;
            }
            try {
                return prepareOn(next, arguments, encoded, metadata, deadline, next.nanoTime(), unfit);
            } catch (RPCXException again) {
                if (!(again instanceof LocalFailure)) {
                    throw again;
                }
                last = next;
                refused = again;
            }
        }
    }

    /**
     * @param unfit instances that do not take the call: each is counted as failed once this one takes it, since a
     *     call that no instance takes is at fault itself
     */
    private ClientCall prepareOn(
            ClientConnection on,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now,
            List<ClientAddress> unfit) {
        ClientCall call = acquire(on, deadline);
        ClientConnection used = on;
        long serial = call.serial;
        boolean isHeld = true;
        try {
            // The connection has been found idle since it was chosen, and may be about to be closed, so its slot is
            // given back. If no other connection of the instance is ready, this one takes the call after all.
            while (used.isParting) {
                ClientConnection other = used.address().ready();
                if (other == null) {
                    break;
                }
                call.dropUnsent();
                isHeld = false;
                used = other;
                call = acquire(used, deadline);
                serial = call.serial;
                isHeld = true;
            }
            try {
                encode(used, call, arguments, encoded, metadata, deadline, now);
                used.address().health().begins(deadline);
                if (!unfit.isEmpty()) {
                    unfit.forEach(ClientAddress::refused);
                }
            } catch (Throwable unsent) {
                used.address().health().unsent();
                // Throwable, since the user's methods may throw what they do not declare: otherwise nobody would give
                // the slot back.
                call.dropUnsent();
                isHeld = false;
                throw unsent;
            }
            isHeld = false;
        } finally {
            if (isHeld) {
                // stores only: where the stack is exhausted no method can be called
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        return call;
    }

    /**
     * Takes a slot of a chosen connection. Where none is free, the instance gets back the trial that the choice may
     * have taken, since no call comes of it.
     */
    private static ClientCall acquire(ClientConnection on, long deadline) {
        try {
            return on.slots.acquire(deadline);
        } catch (RPCXException full) {
            on.address().health().unsent();
            throw full;
        }
    }

    /** Writes the request, prelude and body, into the slot. */
    private void encode(
            ClientConnection connection,
            ClientCall call,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now) {
        try {
            ByteBuf out = call.body;
            int head = kind == Kind.ONE_WAY ? Wire.NOTICE : Wire.REQUEST;
            int number = connection.numberOf(this);
            if (number > 0) {
                Varint.write(out, number);
            } else {
                head |= Wire.NAMED;
                out.writeByte(serviceBytes.length).writeBytes(serviceBytes);
                out.writeByte(nameBytes.length).writeBytes(nameBytes);
            }
            long left = deadline - now;
            if (left <= 0) {
                throw late();
            }
            call.givenNanos = left;
            // The call has the time that is left, however long it has waited before. A request without TIME has the
            // full default time, so any less time is written, rounded down so that it never grows on its way. Time for
            // which the request waits for the socket is taken off as well. Time for which it waits for the event loop
            // is not: if the loop is held up, the request leaves with all of this time, even when that is over, since
            // nobody looks at the clock then.
            long micros = Math.max(1, TimeUnit.NANOSECONDS.toMicros(left));
            int timeAt = out.writerIndex();
            if (connection.carriesTime(left) || !CurrentCall.isAbsent()) {
                head |= Wire.TIME;
                Varint.write(out, micros);
            }
            int timeBytes = out.writerIndex() - timeAt;
            int metadataAt = out.writerIndex();
            if (!metadata.isEmpty()) {
                head |= Wire.METADATA;
                MetadataFields.write(out, metadata);
            }
            int prelude = out.writerIndex();
            if (encoded == null) {
                parameters.write(arguments, out);
            } else {
                out.writeBytes(encoded, encoded.readerIndex(), encoded.readableBytes());
            }
            int bytes = out.writerIndex() - prelude;
            if (bytes > connection.maxBytesTaken()) {
                throw LocalFailure.unfit(
                        RPCXException.Code.TOO_LARGE,
                        "a request of " + bytes + " bytes (expected: at most " + connection.maxBytesTaken() + ")");
            }
            if (timeBytes == 0 && out.writerIndex() > Wire.MAX_PAYLOAD_BYTES - Varint.size(micros)) {
                // The request may have to carry TIME when it begins to leave, and exceeds one frame then. TIME is
                // inserted now, so that the charge and FrameScheduler count its bytes.
                head |= Wire.TIME;
                timeBytes = Varint.insert(out, timeAt, micros);
                metadataAt += timeBytes;
                prelude += timeBytes;
            }
            call.timeAt(timeAt, timeBytes);
            if (metadata.isComputed()) {
                call.metadataAt(metadata, metadataAt, prelude - metadataAt);
            }
            if (out.writerIndex() > Outbound.SMALL_BYTES) {
                call.holdRequest(HeapArray.taken(out));
            }
            call.head = head;
            call.argumentsAt = prelude;
            call.argumentsEnd = out.writerIndex();
            if (items != null) {
                needStream(arguments);
                call.upload = upload(connection, call, items);
            }
        } catch (CodecException e) {
            throw unusable(e);
        } finally {
            // The user's accessors and suppliers of metadata may have set the interrupt flag of an event loop, which
            // writes a further attempt.
            LoopThread.forgetInterrupt();
        }
    }

    private void needStream(@Nullable Object[] arguments) {
        if (arguments[0] == null) {
            throw RPCXException.refused(
                    RPCXException.Code.INVALID, this + ": the stream to send is null (expected: a publisher)");
        }
    }

    /** Encodes the arguments as they are now, for a call that leaves later. */
    ByteBuf encoded(Object[] arguments) {
        if (items != null) {
            needStream(arguments);
        }
        ByteBuf out = Unpooled.buffer();
        try {
            parameters.write(arguments, out);
        } catch (CodecException e) {
            throw unusable(e);
        }
        return out;
    }

    private static StreamSender upload(ClientConnection connection, ClientCall call, Codec<Object> items) {
        long serial = call.serial();
        return new StreamSender(
                connection,
                call.id,
                items,
                Wire.END,
                new StreamSender.Failed() {
                    @Override
                    public void onFailure(Throwable thrown) {
                        call.cancel(
                                serial,
                                RPCXException.Code.CANCELLED,
                                "the stream to send has failed: " + ThrowableText.words(thrown),
                                thrown);
                    }

                    @Override
                    public void tooLarge(RPCXException why) {
                        call.cancel(serial, why.code(), why.getMessage(), null);
                    }
                },
                () -> {},
                null);
    }

    /**
     * Subscribes to the stream that a call sends to the server, once its request is queued: a publisher that fails at
     * once then ends a call that exists. The items wait for the server's credit.
     */
    @SuppressWarnings("unchecked") // the proxied method declares this type
    public static void subscribe(@Nullable StreamSender upload, Object[] arguments) {
        if (upload == null) {
            return;
        }
        upload.subscribeHere((Flow.Publisher<Object>) arguments[0]);
    }

    private RPCXException late() {
        return RPCXException.refused(RPCXException.Code.DEADLINE_EXCEEDED, "no time left to send the call");
    }

    static RPCXException unusable(CodecException e) {
        return new RPCXException(
                e.code() == CodecException.Code.TOO_LARGE ? RPCXException.Code.TOO_LARGE : RPCXException.Code.INVALID,
                e.getMessage() == null ? e.code().name() : e.getMessage(),
                RPCXException.Executed.NOT_EXECUTED,
                e);
    }

    @Nullable
    Object decode(ByteBuf reply) {
        try {
            return result.read(reply);
        } catch (Throwable e) {
            throw unreadable(e);
        }
    }

    /**
     * Error of a call for whose result the codec or a constructor has thrown something, an {@code Error} included: the
     * failure belongs to this call alone.
     */
    static RPCXException unreadable(Throwable e) {
        try {
            return new RPCXException(
                    RPCXException.Code.INVALID,
                    "the result cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        } catch (Throwable noMemory) {
            // the call has to end all the same
            return UNREADABLE;
        }
    }

    /** A call that no thread blocks for. Also a one-way call, whose future nobody looks at. */
    public static final class Async extends AsyncCall implements Runnable {
        private final Object[] arguments;
        private final Metadata metadata;
        private final long deadlineNanos;
        private final CallFuture<@Nullable Object> future = new CallFuture<>();

        /** Future that the caller has: {@code future}, or that of the hedge if this is one of its two calls. */
        private final CompletableFuture<?> whole;

        private int attempt;

        /** Number of attempts that have left and ended. */
        private int sent;

        /**
         * The arguments, encoded when the call was made. They are kept while the call waits for its first connection,
         * and for each later attempt of a one-way call, but not while the slot has them too. Null for any other
         * attempt, which encodes the arguments anew.
         */
        private @Nullable ByteBuf encoded;

        /** Charge for {@link #encoded}; null if that is null. */
        private Route.@Nullable WaitingBytes held;

        private int key;
        private long permit = CircuitBreaker.PERMITTED;

        /** Why the arguments could not be kept for the next attempt; null if they were kept or did not have to be. */
        private @Nullable RPCXException unkept;

        /** {@link #awaitOnClose} has been called. Written before the call is sent, or as its attempt ends. */
        private boolean isWaitedFor;

        /** An earlier attempt may have been executed, so the call may have been, however the latest attempt ends. */
        private boolean mayHaveRun;

        /** Instance that has refused the previous attempt that left; null if none has. */
        private @Nullable ClientAddress refusing;

        private static final AtomicReferenceFieldUpdater<Async, @Nullable ClientCall> SLOT =
                AtomicReferenceFieldUpdater.newUpdater(Async.class, ClientCall.class, "slot");

        /** Slot of the latest attempt; it may have another call by now. */
        private volatile @Nullable ClientCall slot;

        /**
         * Stream that the latest attempt sends, if any. It is set before that attempt is sent, and read once it has
         * ended.
         */
        private @Nullable StreamSender upload;

        /**
         * Instance to avoid: it has the other call of the hedge under way, or had the previous attempt that left. Null
         * for none.
         */
        private @Nullable ClientAddress avoided;

        /** @param hedged future that the caller has of a hedged call; null for any other call */
        public Async(
                ClientMethod method,
                Object[] arguments,
                Metadata metadata,
                long deadlineNanos,
                @Nullable ClientAddress avoided,
                @Nullable CompletableFuture<?> hedged) {
            super(method);
            this.whole = hedged == null ? future : hedged;
            this.arguments = arguments;
            this.metadata = metadata;
            this.deadlineNanos = deadlineNanos;
            this.avoided = avoided;
        }

        /** Instance of the latest attempt; null before the call has been sent. */
        public @Nullable ClientAddress address() {
            ClientCall used = slot;
            return used == null ? null : used.connection.address();
        }

        void giveUp() {
            future.cancel(true);
        }

        /** See {@link ClientCall#oneWay}. */
        @Nullable
        CompletableFuture<?> oneWay() {
            return method.kind == Kind.ONE_WAY && !future.isDone() ? future : null;
        }

        /** @param now time at which this thread began the call */
        public CallFuture<@Nullable Object> start(long now) {
            return start(false, now);
        }

        /** Starts the second call of a hedge, since the same call has been made once already. */
        CallFuture<@Nullable Object> startAgain(long now) {
            return start(true, now);
        }

        private CallFuture<@Nullable Object> start(boolean isAgain, long begun) {
            long now = begun;
            try {
                if (method.routedBy != null) {
                    key = method.key(arguments);
                    // key() may have run the caller's own code, which takes time
                    now = method.route.ticker().nanoTime();
                }
                permit = isAgain ? method.route.calledAgain() : method.route.called();
            } catch (RPCXException refused) {
                future.fail(refused);
                return future;
            }
            if (permit != CircuitBreaker.PERMITTED) {
                future.onEnd((result, thrown) -> method.route.releasePermit(permit));
            }
            return attempt(now);
        }

        private void attemptAgain() {
            attempt(method.route.ticker().nanoTime());
        }

        /** @param now time at which this thread began the attempt */
        private CallFuture<@Nullable Object> attempt(long now) {
            ClientConnection ready = method.route.readyElsewhere(key, avoided);
            if (ready != null && trySendOn(ready, now)) {
                return future;
            }
            if (keepsArguments()) {
                try {
                    waitForConnection();
                } catch (Throwable e) {
                    // also where the heap is full: the end of the call gives back what the call holds
                    end(e);
                }
            }
            return future;
        }

        private void waitForConnection() {
            Route.Wait wait = method.route.await(key, deadlineNanos, method.times, permit, (connected, failure) -> {
                if (connected == null) {
                    end(java.util.Objects.requireNonNull(failure));
                } else if (!trySendOn(connected, connected.nanoTime())) {
                    attemptAgain();
                }
            });
            if (wait != null) {
                // A call whose future has ended waits no longer. Once the wait is over, giveUp() does nothing.
                future.onEnd((result, thrown) -> {
                    if (wait.giveUp()) {
                        // no attempt is under way or to come, so nobody else calls releaseReferences()
                        future.releaseReferences();
                    }
                });
            }
        }

        /**
         * Keeps the arguments of a call that waits for its first connection: the caller may change them from now on.
         *
         * @return false if the arguments cannot be kept, and the call has ended for that
         */
        private boolean keepsArguments() {
            if (method.kind == Kind.ONE_WAY) {
                awaitOnClose();
            }
            if (encoded != null || attempt > 0) {
                return true;
            }
            try {
                ByteBuf made = method.encoded(arguments);
                hold(made.capacity());
                encoded = made;
            } catch (Throwable e) {
                end(e);
                return false;
            }
            return true;
        }

        private void hold(int bytes) {
            Route.WaitingBytes taken = method.route.waitingBytes();
            future.onEnd(taken);
            taken.hold(bytes);
            held = taken;
        }

        /** Gives up the kept arguments: the request is in its slot, and charged to the connection. */
        private void forgetEncoded() {
            encoded = null;
            Route.WaitingBytes taken = held;
            if (taken != null) {
                held = null;
                taken.giveBack();
            }
        }

        /** Has the end of the client wait for this call, which has no slot by which it would be found. */
        private void awaitOnClose() {
            if (!isWaitedFor) {
                isWaitedFor = true;
                method.route.awaitOnClose(future);
            }
        }

        @Override
        void beforeSlotRelease(ClientCall slot, RPCXException error) {
            if (method.kind != Kind.ONE_WAY) {
                return;
            }
            awaitOnClose();
            int left = hasLeft(error) ? sent + 1 : sent;
            if (encoded != null || !method.isWorthAnother(error, attempt, left, upload, address())) {
                return;
            }
            ByteBuf made = slot.arguments();
            if (made != null) {
                // the caller of a one-way call has no future that says how long the arguments must not change
                try {
                    encoded = kept(made);
                } catch (RPCXException noRoom) {
                    unkept = noRoom;
                }
            }
        }

        private ByteBuf kept(ByteBuf bytes) {
            hold(bytes.readableBytes());
            return Unpooled.copiedBuffer(bytes);
        }

        private void end(Throwable failure) {
            if (method.kind == Kind.ONE_WAY) {
                method.route.oneWayFailed(method, failure);
            }
            future.fail(callerError(failure, mayHaveRun));
        }

        /**
         * @return false if other calls have filled the connection, and the call has to wait; true also if it has ended
         */
        private boolean trySendOn(ClientConnection ready, long now) {
            try {
                return sendOn(ready, now);
            } catch (Throwable e) {
                end(e);
                return true;
            }
        }

        private boolean sendOn(ClientConnection on, long now) {
            if (future.isDone()) {
                // its caller has ended it
                future.releaseReferences();
                return true;
            }
            ClientCall call = method.prepareOrWait(on, key, arguments, encoded, metadata, deadlineNanos, now);
            if (call == null) {
                return false;
            }
            long serial = call.serial;
            ClientConnection used = call.connection;
            StreamSender items = call.upload;
            boolean isHeld = true;
            try {
                if ((attempt > 0 || whole != future) && whole.isDone()) {
                    dropUnsent(call);
                    isHeld = false;
                    return true;
                }
                attempt++;
                if (items != null) {
                    method.endTrialOnceTaken(call, items, deadlineNanos, permit);
                }
                // The stores from here on are visible to any thread that sees the action that onCancel() stores below.
                copyFromSlot(call);
                SLOT.lazySet(this, call);
                upload = items;
                if (method.kind != Kind.ONE_WAY || call.keepsArguments()) {
                    forgetEncoded();
                }
                future.onCancel(this);
                call.sendAsync(this);
                isHeld = false;
            } finally {
                if (isHeld) {
                    // stores only, as in callBlocking()
                    call.orphan = serial;
                    used.slots.hasOrphans = true;
                }
            }
            // the local variable, not the field: this attempt may have ended, and the next one have set the field
            subscribe(items, arguments);
            if (future.isCancelled()) {
                // it was cancelled before it had an action to run
                call.cancel(serial);
            }
            return true;
        }

        /**
         * Drops the attempt of a call whose future has ended while the arguments were read for that attempt: the caller
         * may have changed them since. Arguments that were read before that end are those that the caller has called
         * with.
         */
        private void dropUnsent(ClientCall call) {
            call.connection.address().ended(Health.Outcome.UNKNOWN, deadlineNanos - call.givenNanos);
            call.dropUnsent();
            giveUp();
            future.releaseReferences();
        }

        /**
         * Cancels the latest attempt, since the caller gives the call up. If another attempt is being made at the same
         * time, the thread that makes it cancels it once it is sent.
         */
        @Override
        public void run() {
            ClientCall used = slot;
            if (used != null) {
                used.cancel(this);
            }
        }

        private Health.Outcome ended(@Nullable RPCXException error) {
            ClientAddress used = address();
            if (used == null) {
                return Health.Outcome.UNKNOWN;
            }
            Health.Outcome outcome = outcome(error, deadlineNanos);
            used.ended(outcome, begunNanos(deadlineNanos));
            if (refusing != null) {
                method.compare(refusing, used, outcome);
            }
            return outcome;
        }

        @Override
        void succeed(@Nullable Object value) {
            method.route.recordOutcome(ended(null), permit);
            future.succeed(value);
        }

        @Override
        void tellCaller(@Nullable Object value, @Nullable RPCXException error) {
            future.releaseReferences();
            if (error == null) {
                future.complete(value);
            } else {
                future.completeExceptionally(error);
            }
        }

        @Override
        void fail(RPCXException error) {
            Health.Outcome outcome = ended(error);
            sent += hasLeft(error) ? 1 : 0;
            if (mayTryAgain(error)) {
                mayHaveRun |= error.executed() != RPCXException.Executed.NOT_EXECUTED;
                ClientAddress used = address();
                if (hasLeft(error) && used != null) {
                    refusing = isRefusal(error) ? used : null;
                    avoided = used;
                }
                try {
                    attemptAgain();
                } catch (Throwable e) {
                    end(e);
                }
            } else {
                method.route.recordOutcome(outcome, permit);
                ClientAddress last = address();
                if (unkept != null && !hasLeft(error)) {
                    end(unkept);
                } else {
                    end(last == null ? error : Health.named(error, last, method));
                }
            }
        }

        /**
         * Whether to make another attempt. Nobody waits for a call whose future has ended, and a one-way call is sent
         * with the arguments that it was made with or not at all.
         */
        private boolean mayTryAgain(RPCXException error) {
            return !whole.isDone()
                    && (method.kind != Kind.ONE_WAY || encoded != null)
                    && method.mayTryAgain(error, attempt, sent, upload, address());
        }
    }
}
