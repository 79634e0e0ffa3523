package dev.rpcx.internal.server;

import dev.rpcx.Interceptor;
import dev.rpcx.RPCXException;
import dev.rpcx.RunOn;
import dev.rpcx.internal.CallbackFailures;
import dev.rpcx.internal.ThreadTools;
import dev.rpcx.internal.call.BoundFuture;
import dev.rpcx.internal.io.LoopThread;
import io.netty.channel.EventLoop;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Runs user code for the calls of one connection, on either wire, beside what their handlers run themselves: callbacks
 * for the end of a call, the publishers and subscribers of its streams, and the rest of its chain where an interceptor
 * proceeds on an event loop. All of that runs where the method's handlers do, and may take as long as a handler. So a
 * call that is over keeps its place, and its handler counts, until these threads are done. A thread of an interceptor
 * that runs the handler is one of them. The call's context keeps the number of these threads, since a call's object may
 * serve another call.
 */
public final class CallThreads {
    /** A call for which threads run beside its handler. */
    public interface Call {
        ServerMethod method();

        HandledContext context();

        /**
         * Whether this thread is the one that was given to the call, and runs its handler or the interceptors before
         * it.
         */
        boolean isRunner();

        /**
         * Stops counting the handler in the limit of its method. Any thread, one at a time; a second time does nothing.
         */
        void releaseAdmission(boolean isDone);

        /**
         * Notes that the last thread is done of a call that had this context, and that was over but for its threads, or
         * but for these and its reply. Event loop only.
         */
        void threadsEnded(HandledContext of);
    }

    /** Steps of any call that is over: they hold nothing of it. */
    public static final Steps NO_STEPS = new Steps() {
        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread;
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            throw HandledContext.endedError();
        }

        @Override
        public boolean bringsStream() {
            // whether it does is not known any more, so what has been brought is left as it is
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
            throw HandledContext.endedError();
        }

        @Override
        public void callEnded() {}
    };

    /**
     * Number of stack frames that it may take to end a thread's work or to hand a task over: where fewer are left no
     * handler starts, and no thread is counted.
     */
    private static final int RESERVED_FRAMES = 100;

    private final EventLoop loop;

    /**
     * Runs a task on the connection's event loop, or on the calling thread after the loop's end. While the loop runs,
     * no task runs within the code that hands it over.
     */
    private final Executor inLoopOrHere;

    private final ConnectionThreads threads;
    private final LostCalls lost;

    public CallThreads(EventLoop loop, Executor inLoopOrHere, ConnectionThreads threads, LostCalls lost) {
        this.loop = loop;
        this.inLoopOrHere = inLoopOrHere;
        this.threads = threads;
        this.lost = lost;
    }

    /**
     * Runs the callbacks for the end of a call, not within the code that ends it unless there is no thread for them or
     * the event loop has ended. They run in no call's context: the time of their own call may be over.
     */
    public void runCallbacks(Call call, List<? extends Runnable> told) {
        run(
                call.method().place(),
                new Counted(call, call.context(), () -> told.forEach(CallThreads::tell), null).begin());
    }

    /**
     * As {@link #runCallbacks(Call, List)}, for a call that is over also where there is no memory to tell anybody of
     * it.
     */
    void tellIfPossible(Call call, List<? extends Runnable> told) {
        try {
            runCallbacks(call, List.copyOf(told));
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

    /** Makes the executor that runs the signals of a call's streams, in the call's context. */
    public Executor signalsOf(Call call) {
        HandledContext context = call.context();
        RunOn.Place place = call.method().place();
        return signal -> run(place, new Counted(call, context, () -> context.run(signal), null).begin());
    }

    /** Makes the steps that run the rest of the call's chain where the method's handlers run. */
    public Steps stepsOf(Call call) {
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
                threads.runSignal(place, task);
            } else {
                threads.run(place, task);
                task.step.onQueued();
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
            // the call's place is found at the next check
            lost.isAny = true;
            throw t;
        }
    }

    /**
     * A task that runs once, whoever has taken it: the place where it is to run may take it and throw all the same. It
     * is made before its thread is counted, and handed over right after, so that a thread which has been counted is
     * counted back.
     */
    private final class Counted extends AtomicBoolean implements PoolShares.Task {
        private static final long serialVersionUID = 1;

        private final transient Call call;
        private final transient HandledContext context;
        private final transient Runnable task;

        /**
         * Step of a chain, which may only run where the handlers run; null for a task that may run without a thread of
         * its own where there is none.
         */
        final transient @Nullable LaterStep step;

        Counted(Call call, HandledContext context, Runnable task, @Nullable LaterStep step) {
            this.call = call;
            this.context = context;
            this.task = task;
            this.step = step;
        }

        /** Counts the thread of the task. If that fails, such as at the end of a stack, nothing is counted. */
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

        /** Counts the thread back of a task that is not run. */
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

    /** Continues the chain of one call where its handlers run. */
    public interface Steps {
        /** Whether this thread is an event loop on which no handler of the method may run. */
        boolean isElsewhere();

        /**
         * Goes one step further in the chain of the call, later.
         *
         * @throws RPCXException the call has ended
         */
        CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step);

        /** Whether the method brings a stream: its publisher may be a stage as well, but is not taken for one. */
        boolean bringsStream();

        /** Whether a thread beside the call's own runs a part of its chain. */
        boolean isAnyBehind();

        /** Whether the call does not end while this thread runs for it: the thread is the call's own, or is counted. */
        boolean isCounted();

        /**
         * Runs the handler on a thread of an interceptor, which is counted and which a cancel of the call interrupts.
         *
         * @throws RPCXException the call has ended
         */
        @Nullable
        Object handle(Interceptor.Invocation invocation, Interceptor.Next handler) throws Throwable;

        /**
         * Takes back the steps that wait for a thread: the call has ended, and none of them may start. Any thread. This
         * method throws nothing, as it is called in the midst of what ends a call.
         */
        void callEnded();
    }

    private static final class StepsOfCall implements Steps {
        private final CallThreads threads;
        private final Call call;
        private final HandledContext context;
        private final RunOn.Place place;
        private final boolean bringsStream;

        /** Steps that have not started; null where there was none, as in most calls. Guarded by {@code this}. */
        private @Nullable Set<LaterStep> unbegun;

        /** Threads that run a part of the chain and are counted; null where there was none. Guarded by {@code this}. */
        private @Nullable Set<Thread> counted;

        StepsOfCall(CallThreads threads, Call call) {
            this.threads = threads;
            this.call = call;
            this.context = call.context();
            this.place = call.method().place();
            this.bringsStream = call.method().returnsStream();
        }

        @Override
        public boolean isElsewhere() {
            return Thread.currentThread() instanceof LoopThread
                    && (place != RunOn.Place.EVENT_LOOP || !threads.loop.inEventLoop());
        }

        @Override
        public CompletionStage<?> proceed(Interceptor.Invocation invocation, Interceptor.Next step) {
            LaterStep later = new LaterStep(this, invocation, step);
            // all that may fail comes before the step's thread is counted, and nothing between that and handing the
            // step over
            ThreadTools.reserveStack(RESERVED_FRAMES);
            synchronized (this) {
                if (unbegun == null) {
                    unbegun = new HashSet<>(2);
                }
                unbegun.add(later);
            }
            if (!context.beginStep()) {
                onBegun(later);
                throw HandledContext.endedError();
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
                throw HandledContext.endedError();
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
                // the steps that are left find, when a thread comes to them, that the call has ended
                ThreadTools.report(noMemory);
            }
        }

        synchronized void onBegun(LaterStep step) {
            if (unbegun != null) {
                unbegun.remove(step);
            }
        }
    }

    /**
     * Rest of a chain, which runs on a thread of its own. A cancel of the call interrupts that thread as it does the
     * handler's. While the step waits for that thread, the end of the call takes it back.
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

        /**
         * Called when the step waits for its thread, or has started. The call may have ended while the step was on its
         * way there: then the step is taken back.
         */
        void onQueued() {
            if (context.isBarred()) {
                takeBack();
            }
        }

        /**
         * Takes the step back, if it still waits. The call is over then, and those who wait for the step's result are
         * told so where the call's signals run.
         */
        void takeBack() {
            if (of.threads.threads.withdraw(of.place, counted)) {
                of.onBegun(this);
                try {
                    of.threads.runCallbacks(
                            of.call, List.of(() -> result.completeExceptionally(HandledContext.endedError())));
                } finally {
                    counted.end();
                }
            }
        }

        void refuse() {
            of.onBegun(this);
            result.completeExceptionally(
                    RPCXException.refused(RPCXException.Code.UNAVAILABLE, "the server has no thread for the call"));
        }

        @Override
        public void run() {
            of.onBegun(this);
            if (context.isBarred()) {
                result.completeExceptionally(HandledContext.endedError());
                return;
            }
            try {
                Object value = proceed();
                if (!of.bringsStream && value instanceof CompletionStage<?> stage) {
                    // others may share the stage, or it may never end, so the result waits at a stage of the call's own
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
                // clears also an interrupt that the handler has made itself: the thread's next task must not meet it
                Thread.interrupted();
            }
        }
    }

    /** A thread that a cancel of the call interrupts, for as long as it runs a part of the call's chain. */
    static final class Interruptible implements Runnable {
        /** The thread while it runs that part; null afterwards. Guarded by {@code this}, as the field below is. */
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

        /**
         * Ends the part that a cancel interrupts. Called on that thread: what the thread does next must not meet the
         * call's interrupt, and has to meet that of its owner.
         */
        public synchronized void end() {
            thread = null;
            if (isInterrupted) {
                Thread.interrupted();
            }
        }
    }
}
