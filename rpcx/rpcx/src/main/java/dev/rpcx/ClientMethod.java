package dev.rpcx;

import dev.rpcx.codec.Codec;
import dev.rpcx.codec.CodecException;
import dev.rpcx.codec.HeapArray;
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
 * A method of a client's interface: all that reflection had to say, found once. Calls of it start here, on any thread.
 */
final class ClientMethod {
    /** How the caller waits. */
    enum Kind {
        BLOCKING,
        ASYNC,
        ONE_WAY,
        STREAM
    }

    /** A call that found its connection closing never left, and goes to the next one; but not for ever. */
    private static final int MAX_ATTEMPTS = 8;

    /** Calls that did leave, the first one among them. */
    static final int MAX_SENT = 3;

    private static final Object[] NO_ARGUMENTS = {};

    /** What a call is told whose result cannot be read, where there is no memory to say it better. */
    static final RPCXException UNREADABLE =
            OwnEnd.noRoom("no memory was left for the result", RPCXException.Executed.EXECUTED);

    /** What connections know it by: the same for all methods of the client's proxies that call the same. */
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

    /** Codec of the argument that decides on the instance; null if none does. */
    private final @Nullable RouteKey routedBy;

    private final boolean idempotent;
    private final long hedgeNanos;

    /** Codec of the items of the stream that the method takes; null if it takes none. */
    private final @Nullable Codec<Object> items;

    ClientMethod(
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

    /** Key by which the instance is chosen; 0 where no argument decides. */
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
     * @param maker of a stream, where its method was called: its subscribers come later, and get no more time for that
     */
    long deadline(@Nullable TimedContext maker) {
        return TimedContext.deadlineOf(timeoutNanos, route.ticker(), maker);
    }

    /** What keeps this side and the server's method from reading each other; null where nothing does. */
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

    @Nullable
    Object call(Object @Nullable [] arguments, Metadata metadata) {
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

    @SuppressWarnings("unchecked") // the proxy's signature says so
    private static Object[] bound(@Nullable Object[] arguments) {
        Flow.Publisher<Object> given = (Flow.Publisher<Object>) arguments[0];
        return given == null ? arguments : new Object[] {new BoundPublisher(given, CurrentCall.get())};
    }

    /** Nobody looks at the future of a one-way call: what is known when it is made is thrown. */
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
            route.over(permit);
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
                throw told(unsent, mayHaveRun);
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
                    route.counted(outcome, permit);
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
                    // by stores: where the stack is at its end nothing can be called
                    call.orphan = serial;
                    connection.slots.hasOrphans = true;
                }
            }
            sent += hasLeft(error) ? 1 : 0;
            if (!mayTryAgain(error, attempt, sent, upload, connection.address())) {
                route.counted(outcome, permit);
                throw told(Health.named(error, connection.address(), this), mayHaveRun);
            }
            mayHaveRun |= error.executed() != RPCXException.Executed.NOT_EXECUTED;
            if (hasLeft(error)) {
                refusing = isRefusal(error) ? connection.address() : null;
                avoided = connection.address();
            }
        }
    }

    /**
     * What the caller is told of a call that has failed.
     *
     * @param mayHaveRun an earlier attempt of it may have been executed
     */
    private static RPCXException told(RPCXException end, boolean mayHaveRun) {
        RPCXException told = OwnEnd.told(end);
        return mayHaveRun && told.executed() == RPCXException.Executed.NOT_EXECUTED
                ? new RPCXException(told.code(), told.getMessage(), RPCXException.Executed.MAYBE, told)
                : told;
    }

    /** The same of whatever has ended it. */
    static Throwable told(Throwable end, boolean mayHaveRun) {
        return end instanceof RPCXException known ? told(known, mayHaveRun) : end;
    }

    /** Waits for a connection, and for another one as often as others fill it before this call has its slot. */
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
            // there may be room with the avoided instance alone
            on = null;
        }
    }

    /**
     * As {@link #prepare}. Where others have filled the connection since it was chosen, the call goes on to the one
     * that
     * is chosen then. Who chooses has the connection, and may have the only trial of its instance with it: so it is
     * used
     * or waited for here, and nobody asks for less.
     *
     * @return null where no other connection is there yet, and the call has to wait for one
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
                if (!OwnEnd.is(OwnEnd.Why.FULL, refused)
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
     * Whether a byte of the attempt may have left. Whoever could not, or would not, does not get the next one too,
     * where there is another; an attempt that has come to nobody changes nothing of what is known: who only closes its
     * connection may have the next one.
     */
    private static boolean hasLeft(RPCXException error) {
        return !OwnEnd.is(OwnEnd.Why.LEFT, error);
    }

    /**
     * What the end of a call says of the instance that had it.
     *
     * @param error null for success
     * @param givenNanos what was left of its time when it was sent
     * @param serial of this use of its slot
     */
    Health.Outcome outcome(@Nullable RPCXException error, long givenNanos, long deadlineNanos, long serial) {
        if (error != null) {
            return Health.Outcome.of(
                    error, times, givenNanos, deadlineNanos - route.ticker().nanoTime());
        }
        if (times.isWanted(serial)) {
            long now = route.ticker().nanoTime();
            times.answered(givenNanos - (deadlineNanos - now), now);
        }
        return Health.Outcome.ANSWERED;
    }

    private static boolean isRefusal(RPCXException error) {
        return Health.Outcome.isRefusal(error);
    }

    /** What one instance has refused, and another one takes, counts as failed at the one; what both refuse does not. */
    private void compare(ClientAddress refusing, ClientAddress other, Health.Outcome outcome) {
        if (refusing != other && outcome.isAnswer()) {
            route.refusals(index).giveBack();
            refusing.refused();
        }
    }

    /**
     * A call that takes a stream may last for days. Where it is a trial, of the circuit or of an instance, the server
     * has answered once it asks for items, which only a handler does that has begun. Before the call is sent.
     */
    private void endTrialOnceTaken(ClientCall call, StreamSender upload, long deadline, long permit) {
        ClientAddress used = call.connection.address();
        long begun = deadline - call.givenNanos;
        if (permit != CircuitBreaker.GIVEN || used.health().isUnproven()) {
            upload.whenTaken(() -> {
                used.ended(Health.Outcome.ANSWERED, begun);
                if (permit != CircuitBreaker.GIVEN) {
                    route.counted(Health.Outcome.ANSWERED, permit);
                }
            });
        }
    }

    /**
     * @param attempt counts all attempts, those that came to nobody among them
     * @param sent counts those that have left
     * @param upload the stream that the attempt was to take to the server; null for none
     * @param used the instance that had the attempt; null if none had
     */
    boolean mayTryAgain(
            RPCXException error, int attempt, int sent, @Nullable StreamSender upload, @Nullable ClientAddress used) {
        if (!isWorthAnother(error, attempt, sent, upload, used)) {
            return false;
        }
        if (!hasLeft(error)) {
            return true;
        }
        if (isRefusal(error)) {
            // whoever has refused it does so again; the budget first, which bounds how often all are looked at
            return route.refusals(index).spend() && used != null && route.hasFreeBeside(used);
        }
        return route.budget().spend();
    }

    /** What does not depend on budgets of {@link #mayTryAgain}: asking spends nothing. */
    boolean isWorthAnother(
            RPCXException error, int attempt, int sent, @Nullable StreamSender upload, @Nullable ClientAddress used) {
        if (!hasLeft(error)) {
            // as this side knows by itself: it has cost no server anything; but a publisher has one subscriber
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
        if (error.code() != RPCXException.Code.UNAVAILABLE && !overloaded || OwnEnd.isNoRoom(error)) {
            return false;
        }
        return (idempotent || !executed) && (!overloaded || route.hasOthers(used)) && sent < MAX_SENT;
    }

    /**
     * A slot with the request in it: of this connection, or of another instance's where the server of this one takes no
     * such call, or no more of them. Nothing has left of a call that this side refuses, so going on costs no server
     * anything and no retry; the caller has the slot from here on, and no other way to one.
     *
     * @param encoded the arguments as they were when the call was made; null where they are read now
     * @param now when this thread began with this attempt
     * @throws RPCXException if no connection takes the call; then with the reason of this one
     */
    ClientCall prepare(
            ClientConnection on,
            Object[] arguments,
            @Nullable ByteBuf encoded,
            Metadata metadata,
            long deadline,
            long now) {
        try {
            return prepareOn(on, arguments, encoded, metadata, deadline, now, List.of());
        } catch (RPCXException refused) {
            if (!(refused instanceof OwnEnd)) {
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
            if (OwnEnd.is(OwnEnd.Why.UNFIT, refused)) {
                unfit.add(last.address());
            }
            ClientConnection next = asked.size() < MAX_ATTEMPTS ? route.readyBeside(asked) : null;
            if (next == null) {
                throw first;
            }
            try {
                return prepareOn(next, arguments, encoded, metadata, deadline, next.nanoTime(), unfit);
            } catch (RPCXException again) {
                if (!(again instanceof OwnEnd)) {
                    throw again;
                }
                last = next;
                refused = again;
            }
        }
    }

    /**
     * @param unfit instances that do not take the call: counted once this one does, since what none takes is the call's
     *     fault
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
            // found idle since it was chosen: its slot must not stay taken, or it takes the call after all
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
                // also what a method throws that does not declare it: the slot is nobody's otherwise
                call.dropUnsent();
                isHeld = false;
                throw unsent;
            }
            isHeld = false;
        } finally {
            if (isHeld) {
                // by stores: where the stack is at its end nothing can be called
                call.orphan = serial;
                used.slots.hasOrphans = true;
            }
        }
        return call;
    }

    /** A slot of a connection that was chosen. Where it has none, its instance has no call by that. */
    private static ClientCall acquire(ClientConnection on, long deadline) {
        try {
            return on.slots.acquire(deadline);
        } catch (RPCXException full) {
            on.address().health().unsent();
            throw full;
        }
    }

    /** Writes what stands before the body, and the body. */
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
            // however long the call has waited before; the default stands for a full time only, and anything less is
            // told, rounded down so that time never grows on its way. What it waits for the socket is taken off too.
            // What it waits for the event loop is not: where that is held up it leaves with all of this time, also when
            // that is over, since nobody looks at the clock then
            long micros = Math.max(1, TimeUnit.NANOSECONDS.toMicros(left));
            int timeAt = out.writerIndex();
            if (connection.isTold(left) || !CurrentCall.isAbsent()) {
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
                throw OwnEnd.unfit(
                        RPCXException.Code.TOO_LARGE,
                        "a request of " + bytes + " bytes (expected: at most " + connection.maxBytesTaken() + ")");
            }
            if (timeBytes == 0 && out.writerIndex() > Wire.MAX_PAYLOAD_BYTES - Varint.size(micros)) {
                // may have to tell its time when it begins to leave, and then is to have a charge and turns for that
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
            // by an accessor, or a supplier of metadata: a call that is made again is written on an event loop
            LoopThread.forgetInterrupt();
        }
    }

    private void needStream(@Nullable Object[] arguments) {
        if (arguments[0] == null) {
            throw RPCXException.refused(
                    RPCXException.Code.INVALID, this + ": the stream to send is null (expected: a publisher)");
        }
    }

    /** The arguments as they are now, for a call that leaves later. */
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
                    public void because(Throwable thrown) {
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
     * Subscribes to the stream that a call takes to the server, once its request is queued: a publisher that fails at
     * once ends a call that is there. Its items wait for the server's credit.
     */
    @SuppressWarnings("unchecked") // the proxy's signature says so
    static void subscribe(@Nullable StreamSender upload, Object[] arguments) {
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

    /** Whatever the codec or a constructor has thrown over a result, errors included: it belongs to this call alone. */
    static RPCXException unreadable(Throwable e) {
        try {
            return new RPCXException(
                    RPCXException.Code.INVALID,
                    "the result cannot be read: " + ThrowableText.words(e),
                    RPCXException.Executed.EXECUTED,
                    e);
        } catch (Throwable noMemory) {
            // the call has an end all the same
            return UNREADABLE;
        }
    }

    /** A call nobody blocks for; also one-way, where nobody looks at the future. */
    static final class Async extends AsyncCall implements Runnable {
        private final Object[] arguments;
        private final Metadata metadata;
        private final long deadlineNanos;
        private final CallFuture<@Nullable Object> future = new CallFuture<>();

        /** What the caller has: the same, or that of the hedge of which this is one of two. */
        private final CompletableFuture<?> whole;

        private int attempt;

        /** Attempts that have left and ended. */
        private int sent;

        /**
         * The arguments as they were when the call was made: while it waits for its first connection, and of a one-way
         * call for each attempt behind that, but for as long as the slot has them too. Null for any other attempt, for
         * which they are read anew.
         */
        private @Nullable ByteBuf encoded;

        /** Pays for {@link #encoded}; null with it. */
        private Route.@Nullable WaitingBytes held;

        private int key;
        private long permit = CircuitBreaker.GIVEN;

        /** Why the arguments could not be kept for the next attempt; null if they could, or had not to be. */
        private @Nullable RPCXException unkept;

        /** See {@link #closesBehind}. Before the call is sent, or as its attempt ends. */
        private boolean isWaitedFor;

        /** An earlier attempt may have been executed; so the call may have been, whatever becomes of this one. */
        private boolean mayHaveRun;

        /** The instance that has refused the attempt that left before this one; null if none has. */
        private @Nullable ClientAddress refusing;

        private static final AtomicReferenceFieldUpdater<Async, @Nullable ClientCall> SLOT =
                AtomicReferenceFieldUpdater.newUpdater(Async.class, ClientCall.class, "slot");

        /** That of the latest attempt, which may have another call by now. */
        private volatile @Nullable ClientCall slot;

        /**
         * The stream that the latest attempt sends, if any. It is set before that attempt is sent, and read once it has
         * ended.
         */
        private @Nullable StreamSender upload;

        /** Has the same call under way already, or has had the attempt that left before this one. */
        private @Nullable ClientAddress avoided;

        /** @param hedged what the caller has of a call that is made twice; null for any other */
        Async(
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

        /** Where the call is; null before it has been sent. */
        @Nullable
        ClientAddress address() {
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

        /** @param now the time, at which this thread has begun with the call */
        CallFuture<@Nullable Object> start(long now) {
            return start(false, now);
        }

        /** The same call has been made once already. */
        CallFuture<@Nullable Object> startAgain(long now) {
            return start(true, now);
        }

        private CallFuture<@Nullable Object> start(boolean isAgain, long begun) {
            long now = begun;
            try {
                if (method.routedBy != null) {
                    key = method.key(arguments);
                    // that may have called what the caller has written
                    now = method.route.ticker().nanoTime();
                }
                permit = isAgain ? method.route.calledAgain() : method.route.called();
            } catch (RPCXException refused) {
                future.fail(refused);
                return future;
            }
            if (permit != CircuitBreaker.GIVEN) {
                future.onEnd((result, thrown) -> method.route.over(permit));
            }
            return attempt(now);
        }

        private void attemptAgain() {
            attempt(method.route.ticker().nanoTime());
        }

        /** @param now the time, at which this thread has begun with it */
        private CallFuture<@Nullable Object> attempt(long now) {
            ClientConnection ready = method.route.readyElsewhere(key, avoided);
            if (ready != null && trySendOn(ready, now)) {
                return future;
            }
            if (keepsArguments()) {
                try {
                    waitForConnection();
                } catch (Throwable e) {
                    // also where the heap is full: what the call holds is given back with its end
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
                // a call whose end the caller has is not waited for; once the wait is over this does nothing
                future.onEnd((result, thrown) -> {
                    if (wait.giveUp()) {
                        // no attempt is under way or to come, so nobody else tells the future to
                        future.letGo();
                    }
                });
            }
        }

        /**
         * Keeps the arguments of a call that waits for its first connection: the caller may change them from now on.
         *
         * @return false if the call has ended, since they cannot be kept
         */
        private boolean keepsArguments() {
            if (method.kind == Kind.ONE_WAY) {
                closesBehind();
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

        /** The request is in its slot, whose connection pays for it. */
        private void forgetEncoded() {
            encoded = null;
            Route.WaitingBytes taken = held;
            if (taken != null) {
                held = null;
                taken.giveBack();
            }
        }

        /** The client's end waits for this call, which has no slot that would say so. */
        private void closesBehind() {
            if (!isWaitedFor) {
                isWaitedFor = true;
                method.route.closesBehind(future);
            }
        }

        @Override
        void losesSlot(ClientCall slot, RPCXException error) {
            if (method.kind != Kind.ONE_WAY) {
                return;
            }
            closesBehind();
            int left = hasLeft(error) ? sent + 1 : sent;
            if (encoded != null || !method.isWorthAnother(error, attempt, left, upload, address())) {
                return;
            }
            ByteBuf made = slot.arguments();
            if (made != null) {
                // its caller has nothing that says until when the arguments may not change
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
            future.fail(told(failure, mayHaveRun));
        }

        /** @return false if others have filled the connection, and the call has to wait; true also if it has ended */
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
                // by its caller
                future.letGo();
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
                // seen by whoever sees the action that is stored next
                sentWith(call);
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
                    // by stores, as where a caller blocks
                    call.orphan = serial;
                    used.slots.hasOrphans = true;
                }
            }
            // not the field: the attempt may have ended, and the next one have been made
            subscribe(items, arguments);
            if (future.isCancelled()) {
                // before it had anything to stop
                call.cancel(serial);
            }
            return true;
        }

        /**
         * The caller has had its end while the arguments were read for another attempt, and may have changed them
         * since. What was read before that end is what the caller has called with.
         */
        private void dropUnsent(ClientCall call) {
            call.connection.address().ended(Health.Outcome.UNTOLD, deadlineNanos - call.givenNanos);
            call.dropUnsent();
            giveUp();
            future.letGo();
        }

        /**
         * Its caller gives it up. Where this meets another attempt being made, that one is ended by who makes it, once
         * it is sent.
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
                return Health.Outcome.UNTOLD;
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
            method.route.counted(ended(null), permit);
            future.bring(value);
        }

        @Override
        void endAnyway(@Nullable Object value, @Nullable RPCXException error) {
            future.letGo();
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
                method.route.counted(outcome, permit);
                ClientAddress last = address();
                if (unkept != null && !hasLeft(error)) {
                    end(unkept);
                } else {
                    end(last == null ? error : Health.named(error, last, method));
                }
            }
        }

        /** Nobody waits for one whose end the caller has, and a one-way call is sent as it was made or not at all. */
        private boolean mayTryAgain(RPCXException error) {
            return !whole.isDone()
                    && (method.kind != Kind.ONE_WAY || encoded != null)
                    && method.mayTryAgain(error, attempt, sent, upload, address());
        }
    }
}
