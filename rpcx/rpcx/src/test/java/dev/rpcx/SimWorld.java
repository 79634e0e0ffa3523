package dev.rpcx;

import io.netty.util.concurrent.Ticker;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The time, the chance and the order of one simulated world. Everything in the world happens on the thread that calls
 * {@link #run}. Whoever has something to do is an {@link Actor}, and the seed decides which actor does the next step.
 * Time is a number. It moves on when no actor has anything to do, and also earlier if the seed wants a slow machine.
 * The same seed always makes the same world, down to the last step: {@link #trace} shows it.
 */
final class SimWorld {
    /** Acts in the world. This is an event loop, a thread of the program, or a handler. */
    abstract static class Actor {
        private final SimWorld world;
        private final int number;

        /** An actor makes one in so many steps that it is offered. This says how slow it is beside the others. */
        private final int slowness;

        /** The actor belongs to this process. It is null for the world's own actors. */
        final @Nullable SimPlatform process;

        private int place = -1;

        Actor(SimWorld world, @Nullable SimPlatform process) {
            this.world = world;
            this.process = process;
            this.number = ++world.actors;
            this.slowness = world.random.nextInt(4) == 0 ? 1 << world.random.nextInt(6) : 1;
        }

        /** Does one step. Nobody else acts until it returns. */
        abstract void step();

        abstract boolean hasMore();

        final void wake() {
            if (place < 0 && !world.killed(this)) {
                place = world.ready.size();
                world.ready.add(this);
            }
        }

        final SimWorld world() {
            return world;
        }

        final boolean isActing() {
            return world.acting == this;
        }
    }

    /** Does what it is given, in order. It stands for a thread of the program. */
    static final class Worker extends Actor {
        private final ArrayDeque<Runnable> tasks = new ArrayDeque<>();

        Worker(SimWorld world, @Nullable SimPlatform process) {
            super(world, process);
        }

        void run(Runnable task) {
            tasks.add(task);
            wake();
        }

        @Override
        void step() {
            tasks.remove().run();
        }

        @Override
        boolean hasMore() {
            return !tasks.isEmpty();
        }
    }

    private record Event(long at, long order, Runnable action) implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(order, other.order);
        }
    }

    private static final ThreadLocal<@Nullable SimWorld> CURRENT = new ThreadLocal<>();

    /** Time moves no further than this at once while somebody has something to do. */
    private static final long MAX_LAG_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    final long seed;
    final SplittableRandom random;

    final Ticker ticker = new Ticker() {
        @Override
        public long initialNanoTime() {
            return 0;
        }

        @Override
        public long nanoTime() {
            return now;
        }

        @Override
        public void sleep(long delay, TimeUnit unit) {
            throw new UnsupportedOperationException("nobody sleeps in a simulation (expected: a timer)");
        }
    };

    private final List<Actor> ready = new ArrayList<>();
    private final List<SimLoop> loops = new ArrayList<>();
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final List<String> violations = new ArrayList<>();
    private final @Nullable StringBuilder log;

    /** Time moves once in so many steps although somebody could act. With 0 it never does. */
    private final int lagEvery;

    private @Nullable Actor acting;
    private int actors;
    private int channels;
    private long orders;
    private final long begin;
    private long now;
    private long laggedNanos;
    private long steps;

    /** No process has had more bytes of buffers at a time that were charged to nobody. */
    long mostFreeBytes;

    /** This runs after each step, and looks at the world. */
    private Runnable looks = () -> {};

    private long trace;

    /** @param logging keeps a line for everything that happens: for looking at one seed */
    SimWorld(long seed, boolean logging) {
        this.seed = seed;
        this.random = new SplittableRandom(seed);
        this.begin = random.nextLong(TimeUnit.HOURS.toNanos(1));
        this.now = begin;
        this.lagEvery = random.nextBoolean() ? 0 : 8 << random.nextInt(5);
        this.log = logging ? new StringBuilder() : null;
        this.trace = seed;
        CURRENT.set(this);
    }

    /** Returns the world that acts on this thread. */
    static SimWorld current() {
        SimWorld world = CURRENT.get();
        if (world == null) {
            throw new IllegalStateException("no simulation runs on this thread");
        }
        return world;
    }

    static void clearCurrent() {
        CURRENT.remove();
    }

    long now() {
        return now;
    }

    /** Returns the process whose task runs now, or null for the world's own tasks. */
    @Nullable
    SimPlatform process() {
        return acting == null ? null : acting.process;
    }

    /** Returns how far time has moved although somebody could act. Whatever has a deadline may be late by so much. */
    long laggedNanos() {
        return laggedNanos;
    }

    long steps() {
        return steps;
    }

    /** Returns a hash of all that has happened. */
    long trace() {
        return trace;
    }

    int nextChannel() {
        return ++channels;
    }

    void add(SimLoop loop) {
        loops.add(loop);
    }

    void at(long time, Runnable action) {
        events.add(new Event(time, ++orders, action));
    }

    void in(long nanos, Runnable action) {
        at(now + nanos, action);
    }

    /** Adds {@code what} to the trace, and the text only to the log. */
    void note(long what, String text, Object... arguments) {
        trace = Long.rotateLeft(trace ^ what, 23) * 0x9E3779B97F4A7C15L;
        if (log != null && !text.isEmpty()) {
            log.append((now - begin) / 1000).append(" µs  ");
            log.append(arguments.length == 0 ? text : String.format(text, arguments))
                    .append('\n');
        }
    }

    boolean isLogging() {
        return log != null;
    }

    String log() {
        return log == null ? "" : log.toString();
    }

    /** Records that something has happened that must not happen. */
    void violation(String text) {
        note(text.hashCode(), "VIOLATION " + text);
        violations.add(text);
    }

    List<String> violations() {
        return violations;
    }

    boolean oneIn(int count) {
        return random.nextInt(count) == 0;
    }

    /** Returns a number between the two. Small numbers are as likely as large ones. */
    long spread(long from, long to) {
        int bits = 64 - Long.numberOfLeadingZeros(to - from);
        long bound = bits == 0 ? 1 : Math.min(to - from + 1, 1L << random.nextInt(bits + 1));
        return from + random.nextLong(bound);
    }

    /** Sets the look that follows each step. It finds what must not be, such as memory that nobody has charged. */
    void lookAfterEachStep(Runnable looks) {
        this.looks = looks;
    }

    /** Goes on until the condition holds. @return false if that was not before {@code untilNanos} */
    boolean run(BooleanSupplier done, long untilNanos) {
        while (!done.getAsBoolean()) {
            if (ready.isEmpty()) {
                if (!advance(untilNanos)) {
                    return done.getAsBoolean();
                }
            } else {
                if (lagEvery > 0 && oneIn(lagEvery)) {
                    long before = now;
                    advance(Math.min(untilNanos, now + spread(1_000, MAX_LAG_NANOS)));
                    laggedNanos += now - before;
                }
                if (!ready.isEmpty()) {
                    act(pick());
                }
            }
        }
        return true;
    }

    void runUntil(long time) {
        run(() -> false, time);
    }

    /**
     * Lets this actor, and nobody else, act until it has nothing more to do. It is as if the caller had waited for the
     * actor, and no time had passed.
     */
    void runAlone(Actor actor) {
        while (actor.hasMore()) {
            act(actor);
        }
    }

    /** Lets this actor do nothing any more. */
    void kill(Actor actor) {
        if (actor.place >= 0 && !killed(actor)) {
            remove(actor);
        }
        actor.place = Integer.MAX_VALUE;
        loops.removeIf(loop -> loop.actor == actor);
    }

    private boolean killed(Actor actor) {
        return actor.place == Integer.MAX_VALUE;
    }

    private Actor pick() {
        while (true) {
            Actor actor = ready.get(random.nextInt(ready.size()));
            if (actor.slowness == 1 || oneIn(actor.slowness)) {
                return actor;
            }
        }
    }

    private void act(Actor actor) {
        Actor before = acting;
        acting = actor;
        steps++;
        note(actor.number * 31L + now, "");
        try {
            actor.step();
        } catch (Throwable t) {
            java.io.StringWriter where = new java.io.StringWriter();
            t.printStackTrace(new java.io.PrintWriter(where));
            violation("a task threw " + where);
        } finally {
            acting = before;
        }
        if (actor.place >= 0 && !killed(actor) && !actor.hasMore()) {
            remove(actor);
        }
        looks.run();
    }

    private void remove(Actor actor) {
        Actor last = ready.remove(ready.size() - 1);
        if (last != actor) {
            ready.set(actor.place, last);
            last.place = actor.place;
        }
        actor.place = -1;
    }

    /** Moves time to whatever comes next. @return false if nothing comes before then */
    private boolean advance(long untilNanos) {
        long next = events.isEmpty() ? Long.MAX_VALUE : events.peek().at;
        for (int i = 0; i < loops.size(); i++) {
            next = Math.min(next, loops.get(i).nextTimer());
        }
        if (next > untilNanos) {
            now = Math.max(now, untilNanos);
            return false;
        }
        now = Math.max(now, next);
        while (!events.isEmpty() && events.peek().at <= now) {
            events.remove().action.run();
        }
        for (int i = 0; i < loops.size(); i++) {
            SimLoop loop = loops.get(i);
            if (loop.nextTimer() <= now) {
                loop.actor.wake();
            }
        }
        return true;
    }
}
