package dev.rpcx;

import io.netty.channel.EventLoop;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Runs the code of others for the calls of one connection, on either wire, beside what their handlers run themselves: what
 * wants to be told of a call's end, the publishers and subscribers of its streams, and the rest of its chain where an
 * interceptor proceeds on an event loop. All of that runs where the method's handlers do, and may take as long as a
 * handler: so a call that is over keeps its place, and its handler counts, until these threads are done. A thread of an
 * interceptor that runs the handler is one of them. Their number is kept by the call's context, since a call's object
 * may serve another one.
 */
final class CallThreads {
    /** A call that such threads belong to. */
    interface Call {
        ServerMethod method();

        HandledContext context();

        /** Whether this thread is the one that was given to the call, and runs its handler or what stands before it. */
        boolean isRunner();

        /**
         * The handler counts no longer in the limit of its method. Any thread says so, one at a time; a second time
         * does nothing.
         */
        void leaveNow(boolean isDone);

        /**
         * The call that had this context was over but for its threads, or for these and its reply, and the last of them
         * is done. On the event loop.
         */
        void threadsEnded(HandledContext of);
    }

    /** The steps of any call that is over: they hold nothing of it. */
    static final Steps NO_STEPS = new Steps() {
        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread;
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            throw HandledContext.hasEnded();
        }

        @Override
        public boolean bringsStream() {
            // nobody knows, so what has been brought is left as it is
            return true;
        }

        @Override
        public boolean isAnyBehind() {
            return false;
        }

        @Override
        public boolean isCounted() {
            return false;
        }

        @Override
        public @Nullable Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) {
            throw HandledContext.hasEnded();
        }

        @Override
        public void callEnded() {}
    };

    /**
     * Frames that the end of a thread, or to hand a task over, may take: where a stack is nearly at its end no handler
     * begins, and no thread is counted.
     */
    private static final int RESERVED_FRAMES = 100;

    private final EventLoop loop;

    /** Of the connection: on its event loop, or here after the loop's end. Never within what calls it while the loop runs. */
    private final Executor inLoopOrHere;

    private final ConnectionThreads threads;
    private final LostCalls lost;

    CallThreads(EventLoop loop, Executor inLoopOrHere, ConnectionThreads threads, LostCalls lost) {
        this.loop = loop;
        this.inLoopOrHere = inLoopOrHere;
        this.threads = threads;
        this.lost = lost;
    }

    /**
     * Tells those who wanted to be told of the end of a call, never within what ends it. They are in no call's context:
     * the time of theirs may be over.
     */
    void tell(Call call, List<? extends Runnable> told) {
        run(
                call.method().place(),
                new Counted(call, call.context(), () -> told.forEach(CallThreads::tell), null).begin());
    }

    /** As {@link #tell(Call, List)}, of a call that is over also where there is no memory to tell of it. */
    void tellIfPossible(Call call, List<? extends Runnable> told) {
        try {
            tell(call, List.copyOf(told));
        } catch (Throwable noMemory) {
            ThreadTools.report(noMemory);
        }
    }

    private static void tell(Runnable wantsToKnow) {
        Threads.runShared(() -> {
            try {
                wantsToKnow.run();
            } catch (Throwable t) {
                CallbackFailures.log(t);
            }
        });
    }

    /** Runs the signals of a call's streams, in its context. */
    Executor signalsOf(Call call) {
        HandledContext context = call.context();
        RunOn.Place place = call.method().place();
        return signal -> run(place, new Counted(call, context, () -> context.run(signal), null).begin());
    }

    /** What has the rest of the call's chain run where the method's handlers do. */
    Steps stepsOf(Call call) {
        return new StepsOfCall(this, call);
    }

    private void run(RunOn.Place place, Counted task) {
        boolean isHanded = false;
        try {
            if (place == RunOn.Place.EVENT_LOOP) {
                inLoopOrHere.execute(task);
            } else if (loop.inEventLoop()) {
                runAt(place, task);
            } else {
                inLoopOrHere.execute(() -> runAt(place, task));
            }
            isHanded = true;
        } finally {
            if (!isHanded) {
                task.end();
            }
        }
    }

    private void runAt(RunOn.Place place, Counted task) {
        try {
            if (task.step == null) {
                threads.tell(place, task);
            } else {
                threads.run(place, task);
                task.step.waits();
            }
        } catch (RuntimeException | Error noThread) {
            task.runWithoutThread();
        }
    }

    private void ended(Call call, HandledContext context) {
        if (!context.endThread(call)) {
            return;
        }
        try {
            inLoopOrHere.execute(() -> call.threadsEnded(context));
        } catch (Throwable t) {
            // its place is found at the next look
            lost.isAny = true;
            throw t;
        }
    }

    /**
     * Runs once, whoever has taken it: a place may take a task and throw all the same. It is made before its thread is
     * counted, and handed over next: who has been counted is counted back.
     */
    private final class Counted extends AtomicBoolean implements PoolShares.Task {
        private static final long serialVersionUID = 1;

        private final transient Call call;
        private final transient HandledContext context;
        private final transient Runnable task;

        /** A handler's part, which may not run anywhere else; null for what may run here where there is no thread for it. */
        final transient @Nullable LaterStep step;

        Counted(Call call, HandledContext context, Runnable task, @Nullable LaterStep step) {
            this.call = call;
            this.context = context;
            this.task = task;
            this.step = step;
        }

        /** Counts its thread. Where this fails, such as at the end of a stack, nothing is counted. */
        Counted begin() {
            ThreadTools.reserveStack(RESERVED_FRAMES);
            context.beginThread();
            return this;
        }

        @Override
        public void run() {
            run(task);
        }

        void runWithoutThread() {
            run(step == null ? task : step::refuse);
        }

        @Override
        public void refused(Throwable noThread) {
            boolean isHanded = false;
            try {
                inLoopOrHere.execute(this::runWithoutThread);
                isHanded = true;
            } finally {
                if (!isHanded) {
                    end();
                }
            }
        }

        /** It is not run. */
        void end() {
            if (compareAndSet(false, true)) {
                ended(call, context);
            }
        }

        private void run(Runnable one) {
            if (!compareAndSet(false, true)) {
                return;
            }
            try {
                one.run();
            } finally {
                LoopThread.forgetInterrupt();
                ended(call, context);
            }
        }
    }

    /** Goes on with one call where its handlers run. */
    interface Steps {
        /** Whether this thread is an event loop on which no handler of the method may run. */
        boolean isElsewhere();

        /**
         * Goes one step further in the chain of the call, later.
         *
         * @throws RPCXException the call has ended
         */
        CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step);

        /** Whether the method brings a stream: its publisher may be a stage as well, and is none here. */
        boolean bringsStream();

        /** Whether a thread beside the call's own goes on with it. */
        boolean isAnyBehind();

        /** Whether the call does not end while this thread runs for it: it is the call's own, or counted. */
        boolean isCounted();

        /**
         * Runs the handler on a thread of an interceptor, which is counted and which a cancel of the call interrupts.
         *
         * @throws RPCXException the call has ended
         */
        @Nullable
        Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable;

        /**
         * Takes back the steps that wait for a thread: the call has ended, and none of them may begin. Any thread. It
         * throws nothing, as it stands between the steps by which a call ends.
         */
        void callEnded();
    }

    private static final class StepsOfCall implements Steps {
        private final CallThreads threads;
        private final Call call;
        private final HandledContext context;
        private final RunOn.Place place;
        private final boolean bringsStream;

        /** Those that have not begun; null where there was none, as in most calls. Guarded by this. */
        private @Nullable Set<LaterStep> unbegun;

        /** Threads that run a part of the chain and are counted; null where there was none. Guarded by this. */
        private @Nullable Set<Thread> counted;

        StepsOfCall(CallThreads threads, Call call) {
            this.threads = threads;
            this.call = call;
            this.context = call.context();
            this.place = call.method().place();
            this.bringsStream = call.method().brings();
        }

        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread
                    && (place != RunOn.Place.EVENT_LOOP || !threads.loop.inEventLoop());
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            LaterStep later = new LaterStep(this, invocation, step);
            // all that may fail comes before its thread is counted, and nothing between that and handing it over
            ThreadTools.reserveStack(RESERVED_FRAMES);
            synchronized (this) {
                if (unbegun == null) {
                    unbegun = new HashSet<>(2);
                }
                unbegun.add(later);
            }
            if (!context.beginStep()) {
                begins(later);
                throw HandledContext.hasEnded();
            }
            threads.run(place, later.counted);
            return later.result;
        }

        @Override
        public boolean bringsStream() {
            return bringsStream;
        }

        @Override
        public synchronized boolean isAnyBehind() {
            return counted != null && !counted.isEmpty();
        }

        @Override
        public boolean isCounted() {
            if (call.isRunner()) {
                return true;
            }
            synchronized (this) {
                return counted != null && counted.contains(Thread.currentThread());
            }
        }

        @Override
        public @Nullable Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable {
            ThreadTools.reserveStack(RESERVED_FRAMES);
            if (!context.enterHandlerOnThread()) {
                throw HandledContext.hasEnded();
            }
            try {
                return proceedCounted(invocation, handler);
            } finally {
                threads.ended(call, context);
            }
        }

        /** Goes one step further on this thread, which is counted. A cancel of the call interrupts it meanwhile. */
        @Nullable
        Object proceedCounted(Interceptor.Invocation invocation, Interceptor.Next step) throws Throwable {
            Thread here = Thread.currentThread();
            Interruptible interruptible = new Interruptible(here);
            synchronized (this) {
                if (counted == null) {
                    counted = new HashSet<>(2);
                }
                counted.add(here);
            }
            try {
                context.onCancel(interruptible);
                return HandledContext.proceedHere(context, this, invocation, step);
            } finally {
                synchronized (this) {
                    counted.remove(here);
                }
                interruptible.end();
            }
        }

        @Override
        public void callEnded() {
            try {
                List<LaterStep> all;
                synchronized (this) {
                    all = unbegun == null ? List.of() : List.copyOf(unbegun);
                }
                all.forEach(LaterStep::takeBack);
            } catch (Throwable noMemory) {
                // what is left finds, when a thread comes to it, that the call has ended
                ThreadTools.report(noMemory);
            }
        }

        synchronized void begins(LaterStep step) {
            if (unbegun != null) {
                unbegun.remove(step);
            }
        }
    }

    /**
     * The rest of a chain, on a thread of its own. A cancel of the call interrupts that thread as it does the
     * handler's.
     * While it waits for that thread the end of the call takes it back.
     */
    private static final class LaterStep implements Runnable {
        private final StepsOfCall of;
        private final HandledContext context;
        private final Interceptor.Invocation invocation;
        private final Interceptor.Next step;
        final Counted counted;
        final BoundFuture<@Nullable Object> result = new BoundFuture<>();

        LaterStep(StepsOfCall of, Interceptor.Invocation invocation, Interceptor.Next step) {
            this.of = of;
            this.context = of.context;
            this.invocation = invocation;
            this.step = step;
            this.counted = of.threads.new Counted(of.call, of.context, this, this);
        }

        /** It waits for its thread, or has begun. The call may have ended while it was on its way there. */
        void waits() {
            if (context.isBarred()) {
                takeBack();
            }
        }

        /** Where it waits: whoever waits for it is told where the call's signals run, and the call is over then. */
        void takeBack() {
            if (of.threads.threads.withdraw(of.place, counted)) {
                of.begins(this);
                try {
                    of.threads.tell(of.call, List.of(() -> result.completeExceptionally(HandledContext.hasEnded())));
                } finally {
                    counted.end();
                }
            }
        }

        void refuse() {
            of.begins(this);
            result.completeExceptionally(
                    RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server has no thread for the call"));
        }

        @Override
        public void run() {
            of.begins(this);
            if (context.isBarred()) {
                result.completeExceptionally(HandledContext.hasEnded());
                return;
            }
            try {
                Object value = proceed();
                if (!of.bringsStream && value instanceof CompletionStage<?> stage) {
                    // others may share it, or it may never end: this waits at one of the call's own
                    context.asOwn(stage).whenComplete(this::end);
                } else {
                    result.complete(value);
                }
            } catch (Throwable t) {
                result.completeExceptionally(t);
            }
        }

        private void end(@Nullable Object value, @Nullable Throwable thrown) {
            if (thrown == null) {
                result.complete(value);
            } else {
                result.completeExceptionally(thrown);
            }
        }

        private @Nullable Object proceed() throws Throwable {
            try {
                return of.proceedCounted(invocation, step);
            } finally {
                // also one that the handler has made itself: the thread's next task must not meet it
                Thread.interrupted();
            }
        }
    }

    /** A thread that a cancel of the call interrupts, for as long as it runs a part of the call's chain. */
    static final class Interruptible implements Runnable {
        /** Guarded by this, as what follows. */
        private @Nullable Thread thread;

        private boolean isInterrupted;

        Interruptible(Thread thread) {
            this.thread = thread;
        }

        @Override
        public synchronized void run() {
            if (thread != null) {
                isInterrupted = true;
                thread.interrupt();
            }
        }

        /** On that thread. What it does next must not meet the call's interrupt, and has to meet that of its owner. */
        synchronized void end() {
            thread = null;
            if (isInterrupted) {
                Thread.interrupted();
            }
        }
    }
}
