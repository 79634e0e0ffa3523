package dev.rpcx.internal.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.HandPlatform;
import dev.rpcx.IdleCall;
import dev.rpcx.Inside;
import dev.rpcx.Interceptor;
import dev.rpcx.Metadata;
import dev.rpcx.Method;
import dev.rpcx.RPCXServer;
import dev.rpcx.RegistryServer;
import dev.rpcx.RunOn;
import dev.rpcx.Server;
import dev.rpcx.internal.call.CallInvocation;
import dev.rpcx.internal.ledger.Account;
import dev.rpcx.internal.wire.MethodDictionary;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.util.concurrent.Ticker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.Executor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the context of a call knows about the threads that run for the call. */
class CallThreadsTest {
    @Test
    void aCallLeavesItsLimitOnceWithTheLastOfItsThreadsAndSaysThatItBroughtAResult() {
        HandledContext context = new HandledContext(0, Metadata.EMPTY, null, Ticker.systemTicker());
        List<Boolean> left = new ArrayList<>();
        CallThreads.Call call = new CallThreads.Call() {
            @Override
            public ServerMethod method() {
                throw new IllegalStateException("nobody asks");
            }

            @Override
            public HandledContext context() {
                return context;
            }

            @Override
            public boolean isRunner() {
                return false;
            }

            @Override
            public void releaseAdmission(boolean isDone) {
                assertThat(context.hasThreads()).isTrue();
                left.add(isDone);
            }

            @Override
            public void threadsEnded(HandledContext of) {}
        };
        context.beginThread();
        context.beginThread();
        assertThat(context.mayLeaveNow(true)).isFalse();
        assertThat(context.beginStep()).isFalse();
        assertThat(context.enterHandler()).isFalse();
        assertThat(context.endThread(call)).isFalse();
        assertThat(left).isEmpty();
        // the connection of the call ends here
        assertThat(context.mayLeaveNow(false)).isFalse();
        assertThat(context.endUnlessThreads()).isFalse();
        assertThat(context.endThread(call)).isTrue();
        assertThat(left).containsExactly(true);
        assertThat(context.mayLeaveNow(false)).isTrue();
    }

    @RPCXServer("steps")
    static final class Service {
        @Method
        @RunOn(RunOn.Place.EVENT_LOOP)
        String here(String text) {
            return text;
        }
    }

    /** The number of frames, from the end of a stack upwards, in which something is tried. No try needs as many. */
    private static final int TRIED_FRAMES = 1_000;

    private int triedFrames;

    private void tryAtTheEndOfTheStack(Runnable tried) {
        try {
            tryAtTheEndOfTheStack(tried);
        } catch (StackOverflowError end) {
            triedFrames = 0;
        }
        if (triedFrames < TRIED_FRAMES) {
            triedFrames++;
            try {
                tried.run();
            } catch (StackOverflowError tooDeep) {
                // the test looks at what such an error leaves
            }
        }
    }

    /** Begins so many frames of another size below, so that each try finds other ends of the stack. */
    private long tryBelow(int frames, long wider, Runnable tried) {
        if (frames == 0) {
            tryAtTheEndOfTheStack(tried);
            return wider;
        }
        return tryBelow(frames - 1, wider + frames, tried) + wider;
    }

    /** Adds a task so many frames below, as deep as an event loop adds it to its tasks. */
    private static void addDeep(Queue<Runnable> to, Runnable task, int frames) {
        if (frames == 0) {
            to.add(task);
        } else {
            addDeep(to, task, frames - 1);
        }
    }

    /** Code that asks for items, or goes on with a call, may be deep in a recursion. */
    @ParameterizedTest
    @ValueSource(strings = {"signal", "tell", "step"})
    void atTheEndOfAStackNoThreadIsCountedThatIsNotCountedBack(String what) throws Exception {
        HandPlatform platform = new HandPlatform();
        Server server = Inside.on(Server.builder(RegistryServer.registry(new Service())), platform)
                .build()
                .start();
        ServerMethod method = Objects.requireNonNull(Inside.core(server).method(MethodDictionary.key("steps", "here")));
        EmbeddedChannel channel = new EmbeddedChannel();
        Account account = Objects.requireNonNull(Inside.core(server).ledger().open(null));
        ArrayDeque<Runnable> tasks = new ArrayDeque<>(10_000);
        CallThreads threads = new CallThreads(
                channel.eventLoop(),
                task -> addDeep(tasks, task, 20),
                new ConnectionThreads(platform.threads(1), channel.eventLoop(), account),
                new LostCalls(() -> {}));
        HandledContext context = new HandledContext(0, Metadata.EMPTY, null, platform.ticker);
        CallThreads.Call call = new IdleCall(method, context);
        Executor signals = threads.signalsOf(call);
        CallThreads.Steps steps = threads.stepsOf(call);
        Interceptor.Invocation invocation = new CallInvocation("steps", "here", new Object[0], Metadata.EMPTY, context);
        Runnable signal = () -> {};
        Runnable tried = switch (what) {
            case "signal" -> () -> signals.execute(signal);
            case "tell" -> () -> threads.runCallbacks(call, List.of());
            default -> () -> steps.proceed(invocation, of -> null);
        };
        // what is loaded first is loaded here
        tried.run();
        tasks.forEach(Runnable::run);
        tasks.clear();
        for (int shift = 0; shift < 16; shift++) {
            int frames = shift;
            Thread deep = new Thread(null, () -> tryBelow(frames, 0, tried), "deep", 1 << 19);
            deep.start();
            deep.join();
            assertThat(tasks).isNotEmpty();
            tasks.forEach(Runnable::run);
            tasks.clear();
            assertThat(context.hasThreads()).as("shift %d", shift).isFalse();
        }
        account.close();
    }
}
