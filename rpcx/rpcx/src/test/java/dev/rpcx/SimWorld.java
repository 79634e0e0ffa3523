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
    /** Whoever acts: an event loop, a thread of the program, a handler. */
    abstract static class Actor {
        private final SimWorld world;
        private final int number;

        /** One step in so many is made when it is offered: how slow this one is beside the others. */
        private final int slowness;

        /** The process that it belongs to; null for the world's own. */
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

    /** Does what it is given, in order: a thread of the program. */
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

    /** The longest that time moves while somebody has something to do. */
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

    /** Time moves once in so many steps although somebody could act; 0 for never. */
    private final int lagEvery;

    private @Nullable Actor acting;
    private int actors;
    private int channels;
    private long orders;
    private final long begin;
    private long now;
    private long laggedNanos;
    private long steps;

    /** The most bytes of buffers that any process has had at a time, and that were charged to nobody. */
    long mostFreeBytes;

    /** What is looked at after each step. */
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

    /** The world that acts on this thread. */
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

    /** Whose task runs now; null for the world's own. */
    @Nullable
    SimPlatform process() {
        return acting == null ? null : acting.process;
    }

    /** How far time has moved although somebody could act: by so much anything may be late that has a deadline. */
    long laggedNanos() {
        return laggedNanos;
    }

    long steps() {
        return steps;
    }

    /** Hash of all that has happened. */
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

    /** Adds to the trace; the text only to the log. */
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

    /** What must not be has happened. */
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

    /** Between the two, small values as likely as large ones. */
    long spread(long from, long to) {
        int bits = 64 - Long.numberOfLeadingZeros(to - from);
        long bound = bits == 0 ? 1 : Math.min(to - from + 1, 1L << random.nextInt(bits + 1));
        return from + random.nextLong(bound);
    }

    /** Each step is followed by this look at what may not be, such as memory that nobody has charged. */
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
     * Lets this one act until it has nothing more to do, and nobody else: as if the caller had waited for it, in no
     * time.
     */
    void runAlone(Actor actor) {
        while (actor.hasMore()) {
            act(actor);
        }
    }

    /** It does nothing any more. */
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
