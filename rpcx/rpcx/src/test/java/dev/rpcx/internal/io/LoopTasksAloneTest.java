package dev.rpcx.internal.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.util.concurrent.DefaultEventExecutor;
import io.netty.util.concurrent.EventExecutor;
import io.netty.util.concurrent.ImmediateEventExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the queue of an event loop's tasks without a loop that polls it. */
@Timeout(60)
class LoopTasksAloneTest {
    private static final Runnable FIRST = () -> {};
    private static final Runnable SECOND = () -> {
        // this is another task than the first
    };

    private final LoopTasks tasks = new LoopTasks();

    private static EventExecutor ended() {
        DefaultEventExecutor executor = new DefaultEventExecutor();
        executor.shutdownGracefully(0, 0, TimeUnit.SECONDS).syncUninterruptibly();
        return executor;
    }

    private void expectOrder() {
        assertThat(tasks.isEmpty()).isTrue();
        assertThat(tasks.peek()).isNull();
        assertThat(tasks.poll()).isNull();
        assertThat(tasks.offer(FIRST)).isTrue();
        assertThat(tasks.offer(SECOND)).isTrue();
        assertThat(tasks.size()).isEqualTo(2);
        assertThat(tasks.isEmpty()).isFalse();
        assertThat(tasks.peek()).isSameAs(FIRST);
        assertThat(tasks.poll()).isSameAs(FIRST);
        assertThat(tasks.poll()).isSameAs(SECOND);
        assertThat(tasks.poll()).isNull();
    }

    @Test
    void tasksArePolledInTheirOrderByALoopThatRuns() {
        tasks.of(ImmediateEventExecutor.INSTANCE);
        expectOrder();
    }

    @Test
    void tasksArePolledBeforeTheLoopIsKnown() {
        expectOrder();
        assertThatThrownBy(tasks::iterator).isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void whatALoopPollsWhenItHasEndedIsKeptForThoseWhoAskForItBack() {
        tasks.of(ended());
        tasks.offer(FIRST);
        tasks.offer(SECOND);
        assertThat(tasks.poll()).isNull();
        assertThat(tasks.isEmpty()).isTrue();
        assertThat(tasks.poll()).isNull();
        assertThat(tasks.remove(SECOND)).isTrue();
        assertThat(tasks.remove(SECOND)).as("once").isFalse();
        assertThat(tasks.remove(FIRST)).isTrue();
    }

    @Test
    void whatComesBehindTheLastLookIsGivenBackToo() {
        tasks.of(ended());
        assertThat(tasks.poll()).isNull();
        tasks.offer(FIRST);
        assertThat(tasks.remove(SECOND)).isFalse();
        assertThat(tasks.isEmpty()).isTrue();
        assertThat(tasks.remove(FIRST)).isTrue();
    }

    /** The removal takes as long as a loop may take to end. */
    @Test
    void aLoopThatHasNotEndedKeepsItsTasks() {
        tasks.of(ImmediateEventExecutor.INSTANCE);
        tasks.offer(FIRST);
        long begin = System.nanoTime();
        assertThat(tasks.remove(FIRST)).isFalse();
        assertThat(System.nanoTime() - begin).isGreaterThanOrEqualTo(TimeUnit.SECONDS.toNanos(1));
        assertThat(tasks.poll()).isSameAs(FIRST);
    }

    @Test
    void whoAsksIsNotKeptFromItByAnInterruptAndKeepsIt() {
        tasks.of(ended());
        tasks.offer(FIRST);
        assertThat(tasks.poll()).isNull();
        Thread.currentThread().interrupt();
        boolean isGivenBack = tasks.remove(FIRST);
        assertThat(Thread.interrupted()).isTrue();
        assertThat(isGivenBack).isTrue();
        tasks.remove(FIRST);
        assertThat(Thread.interrupted()).as("nobody has interrupted").isFalse();
    }
}
