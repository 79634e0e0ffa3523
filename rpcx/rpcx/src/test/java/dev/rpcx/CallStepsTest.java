package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.io.LoopThread;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.server.CallThreads;
import dev.rpcx.internal.server.ConnectionThreads;
import dev.rpcx.internal.server.HandledContext;
import dev.rpcx.internal.server.LostCalls;
import dev.rpcx.internal.server.PoolShares;
import dev.rpcx.internal.server.Threads;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.channel.EventLoop;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Flow;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/**
 * Tests the code that runs for a call on further threads: the rest of a chain of interceptors, and the signals of
 * streams. The test decides when such a thread runs, and whether there is one.
 */
class CallStepsTest {
    @RPCXServer("steps")
    static final class Service {
        @Method
        String there(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.POOL)
        String pooled(String text) {
            return text;
        }

        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            return text;
        }

        @Method
        Flow.Publisher<String> brings(String text) {
            return subscriber -> {};
        }
    }

    private final HandPlatform platform = new HandPlatform();
    private final Server server = Server.builder(RegistryServer.registry(new Service()))
            .platform(platform)
            .build()
            .start();
    private final EmbeddedChannel channel = new EmbeddedChannel();
    private final Account account =
            Objects.requireNonNull(server.core().ledger().open(null));
    private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();
    private final ArrayDeque<Runnable> handed = new ArrayDeque<>();
    private final List<String> ended = new ArrayList<>();
    private boolean hasNoThread;
    private Runnable meanwhile = () -> {};
    private boolean isRunner;

    private final Threads pool = new Threads(1) {
        @Override
        public void run(EventLoop loop, RunOn.Place place, Runnable handler) {
            if (hasNoThread) {
                throw new RejectedExecutionException("no thread, in this test");
            }
            handed.add(handler);
            meanwhile.run();
        }
    };

    private final LostCalls lost = new LostCalls(() -> {});
    private final CallThreads threads = new CallThreads(
            channel.eventLoop(), tasks::add, new ConnectionThreads(pool, channel.eventLoop(), account), lost);
    private final HandledContext context = new HandledContext(0, Metadata.EMPTY, null, platform.ticker);

    private final class OneCall extends IdleCall {
        OneCall(String method) {
            super(Objects.requireNonNull(server.core().method(MethodDictionary.key("steps", method))), context);
        }

        @Override
        public boolean isRunner() {
            return isRunner;
        }

        @Override
        public void threadsEnded(HandledContext of) {
            ended.add("over");
        }
    }

    @AfterEach
    void end() {
        hasNoThread = false;
        runAll();
        assertThat(context.hasThreads()).isFalse();
        account.close();
        channel.close();
    }

    /** Runs the tasks of the event loop, and then the tasks that were handed to threads. */
    private void runAll() {
        for (Runnable next = next(); next != null; next = next()) {
            next.run();
        }
    }

    private Runnable next() {
        return tasks.isEmpty() ? handed.poll() : tasks.poll();
    }

    private Interceptor.Invocation invocation() {
        return new CallInvocation("steps", "there", new Object[0], Metadata.EMPTY, context);
    }

    private CallThreads.Steps steps(String method) {
        CallThreads.Steps steps = threads.stepsOf(new OneCall(method));
        context.setSteps(steps);
        return steps;
    }

    private CompletableFuture<Object> proceed(CallThreads.Steps steps, Interceptor.Next step) {
        CompletableFuture<Object> seen = new CompletableFuture<>();
        steps.proceed(invocation(), step).whenComplete((value, thrown) -> {
            if (thrown == null) {
                seen.complete(value);
            } else {
                seen.completeExceptionally(thrown);
            }
        });
        return seen;
    }

    private static Throwable failure(CompletableFuture<?> of) {
        assertThat(of).isCompletedExceptionally();
        return of.handle((value, thrown) -> Objects.requireNonNull(thrown)).join();
    }

    /** Asks on a thread like those of event loops, and returns the answer. */
    private static boolean onALoop(java.util.function.BooleanSupplier asks) throws InterruptedException {
        AtomicReference<Boolean> said = new AtomicReference<>();
        LoopThread loop = new LoopThread(() -> said.set(asks.getAsBoolean()), "loop of a test");
        loop.start();
        loop.join();
        return Objects.requireNonNull(said.get());
    }

    @Test
    void theStepsOfACallThatIsOverHoldNothingAndGoNowhere() throws InterruptedException {
        CallThreads.Steps none = CallThreads.NO_STEPS;
        assertThat(none.isElsewhere()).isFalse();
        assertThat(onALoop(none::isElsewhere)).isTrue();
        assertThat(none.bringsStream()).isTrue();
        assertThat(none.isAnyBehind()).isFalse();
        assertThat(none.isCounted()).isFalse();
        assertThatThrownBy(() -> none.proceed(invocation(), call -> "x")).isInstanceOf(RPCXException.class);
        assertThatThrownBy(() -> none.handle(invocation(), call -> "x")).isInstanceOf(RPCXException.class);
    }

    @Test
    void onAnEventLoopOnlyThoseGoOnWhoseHandlersRunThere() throws InterruptedException {
        for (String method : List.of("there", "here")) {
            CallThreads.Steps steps = steps(method);
            assertThat(steps.isElsewhere()).as("on a thread that may block").isFalse();
            // for the channel of this test, every thread counts as its event loop
            assertThat(onALoop(steps::isElsewhere)).isEqualTo(method.equals("there"));
        }
        assertThat(steps("brings").bringsStream()).isTrue();
        assertThat(steps("there").bringsStream()).isFalse();
    }

    @Test
    void aStepRunsWhenItsThreadDoesAndIsCountedMeanwhile() {
        CallThreads.Steps steps = steps("there");
        assertThat(steps.isCounted()).isFalse();
        isRunner = true;
        assertThat(steps.isCounted()).isTrue();
        isRunner = false;
        List<Boolean> within = new ArrayList<>();
        CompletableFuture<Object> result = proceed(steps, call -> {
            within.add(steps.isCounted());
            within.add(steps.isAnyBehind());
            return "value";
        });
        assertThat(context.hasThreads()).isTrue();
        assertThat(steps.isAnyBehind()).isFalse();
        runAll();
        assertThat(result).isCompletedWithValue("value");
        assertThat(within).containsExactly(true, true);
        assertThat(steps.isCounted()).isFalse();
        assertThat(steps.isAnyBehind()).isFalse();
    }

    @Test
    void aStageOfAStepIsWaitedForAndAStreamIsNot() {
        CompletableFuture<Object> good = new CompletableFuture<>();
        CompletableFuture<Object> bad = new CompletableFuture<>();
        CallThreads.Steps steps = steps("there");
        CompletableFuture<Object> first = proceed(steps, call -> good);
        CompletableFuture<Object> second = proceed(steps, call -> bad);
        CompletableFuture<Object> third = proceed(steps, call -> {
            throw new IllegalStateException("of the step");
        });
        runAll();
        assertThat(first).isNotDone();
        assertThat(second).isNotDone();
        assertThat(failure(third)).hasMessageContaining("of the step");
        good.complete("later");
        assertThat(first).isCompletedWithValue("later");
        bad.completeExceptionally(new IllegalStateException("broken"));
        assertThat(failure(second)).hasMessageContaining("broken");
        CompletableFuture<Object> stage = new CompletableFuture<>();
        CompletableFuture<Object> stream = proceed(steps("brings"), call -> stage);
        runAll();
        assertThat(stream).isCompletedWithValue(stage);
    }

    @Test
    void whereThereIsNoThreadAStepIsRefusedAndASignalRunsHere() {
        hasNoThread = true;
        CallThreads.Steps steps = steps("there");
        CompletableFuture<Object> refused = proceed(steps, call -> "x");
        runAll();
        assertThat(failure(refused)).hasMessageContaining("the server has no thread for the call");
        List<String> told = new ArrayList<>();
        threads.signalsOf(new OneCall("there")).execute(() -> told.add("signal"));
        threads.runCallbacks(new OneCall("there"), List.of(() -> told.add("told")));
        runAll();
        assertThat(told).containsExactly("signal", "told");
        assertThat(context.hasThreads()).isFalse();
    }

    @Test
    void aSignalIsCountedUntilItHasRun() {
        List<Boolean> seen = new ArrayList<>();
        threads.signalsOf(new OneCall("there")).execute(() -> seen.add(context.hasThreads()));
        assertThat(context.hasThreads()).isTrue();
        assertThat(seen).isEmpty();
        runAll();
        assertThat(seen).containsExactly(true);
        assertThat(context.hasThreads()).isFalse();
    }

    /** The pool has taken the step, and later finds no thread for it. */
    @Test
    void whatIsRefusedLaterEndsOnTheEventLoop() {
        CompletableFuture<Object> result = proceed(steps("there"), call -> "x");
        PoolShares.Task task = (PoolShares.Task) Objects.requireNonNull(handedTask());
        task.refused(new OutOfMemoryError("in this test"));
        assertThat(result).as("not within what says so").isNotDone();
        runAll();
        assertThat(failure(result)).hasMessageContaining("no thread");
        // a thread runs the refused task all the same
        task.run();
        assertThat(context.hasThreads()).isFalse();
    }

    private Runnable handedTask() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
        return handed.poll();
    }

    @Test
    void noStepBeginsBehindTheEndOfItsCall() {
        CallThreads.Steps steps = steps("there");
        CompletableFuture<Object> waits = proceed(steps, call -> "x");
        context.barHandler();
        assertThatThrownBy(() -> steps.proceed(invocation(), call -> "y"))
                .isInstanceOfSatisfying(
                        RPCXException.class, e -> assertThat(e.code()).isEqualTo(RPCXException.Code.CANCELLED));
        runAll();
        assertThat(failure(waits)).hasMessageContaining("ended before its handler began");
    }

    /** One thread of the pool is taken, and the call ends when the second step is about to get the next thread. */
    @Test
    void aStepThatWaitsForAThreadIsTakenBackWithItsCall() {
        CallThreads.Steps steps = steps("pooled");
        CompletableFuture<Object> runs = proceed(steps, call -> "runs");
        CompletableFuture<Object> waits = proceed(steps, call -> "waits");
        handTasks();
        assertThat(handed).hasSize(1);
        context.barHandler();
        // the callback that ends the waiting step runs first, beside the step that has the pool's thread
        handTasks();
        handed.addFirst(Objects.requireNonNull(handed.pollLast()));
        Objects.requireNonNull(handed.poll()).run();
        assertThat(failure(waits)).hasMessageContaining("ended before its handler began");
        assertThat(runs).isNotDone();
        runAll();
        assertThat(failure(runs)).hasMessageContaining("ended before its handler began");
    }

    private void handTasks() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }

    @Test
    void aCancelInterruptsAStepWhileItRunsAndNotWhatItsThreadDoesNext() {
        CallThreads.Steps steps = steps("there");
        List<Boolean> interrupted = new ArrayList<>();
        CompletableFuture<Object> result = proceed(steps, call -> {
            context.cancel().forEach(Runnable::run);
            interrupted.add(Thread.currentThread().isInterrupted());
            return "x";
        });
        runAll();
        assertThat(result).isCompletedWithValue("x");
        assertThat(interrupted).containsExactly(true);
        assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }

    @Test
    void aCancelBehindAStepInterruptsNobody() throws Throwable {
        CallThreads.Steps steps = steps("there");
        proceed(steps, call -> "x");
        proceed(steps, call -> {
            throw new IllegalStateException("of the step");
        });
        runAll();
        assertThat(steps.handle(invocation(), call -> "handled")).isEqualTo("handled");
        assertThatThrownBy(() -> steps.handle(invocation(), call -> {
                    throw new IllegalStateException("of the handler");
                }))
                .hasMessage("of the handler");
        context.cancel().forEach(Runnable::run);
        assertThat(Thread.interrupted()).isFalse();
        assertThat(context.hasThreads()).isFalse();
    }

    @Test
    void theLastThreadTellsTheCallThatWasOverButForIt() {
        CallThreads.Steps steps = steps("there");
        proceed(steps, call -> "x");
        assertThat(context.endUnlessThreads()).isFalse();
        assertThat(ended).isEmpty();
        runAll();
        assertThat(ended).containsExactly("over");
        assertThat(lost.isAny).isFalse();
    }

    @Test
    void whatOneWhoIsToldThrowsKeepsTheOthersFromNothing() {
        List<String> told = new ArrayList<>();
        threads.runCallbacks(
                new OneCall("there"),
                List.of(
                        () -> {
                            throw new IllegalStateException("of one who is told");
                        },
                        () -> told.add("the next")));
        runAll();
        assertThat(told).containsExactly("the next");
    }
}
