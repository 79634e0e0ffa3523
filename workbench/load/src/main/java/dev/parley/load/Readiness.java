package dev.parley.load;

import dev.parley.protocol.Event;
import dev.parley.spi.CallException;
import java.time.Duration;

/** Asks a service until it answers rightly. One thread. */
final class Readiness {
    private static final long RETRY_NS = 5_000_000;

    private final Clock clock;
    private final Target asked;
    private String lastFailure = "nothing";

    Readiness(Clock clock, Target asked) {
        this.clock = clock;
        this.asked = asked;
    }

    /**
     * Calls every few milliseconds until so many right answers came one after the other.
     *
     * @param name of the service
     * @throws CallException naming the service and what it said last, if that did not come in time
     */
    Event.Ready await(String name, int times, Duration within) throws InterruptedException {
        long untilNs = clock.nowNs() + within.toNanos();
        int right = 0;
        for (int attempt = 1; clock.nowNs() < untilNs; attempt++) {
            long beginNs = clock.nowNs();
            right = isRight() ? right + 1 : 0;
            if (right == times) {
                return new Event.Ready(name, clock.nowNs() - beginNs, attempt);
            }
            clock.awaitNs(clock.nowNs() + RETRY_NS);
        }
        throw new CallException(
                CallException.Code.DEADLINE_EXCEEDED,
                name + " did not give " + (times == 1 ? "a right reply" : times + " right replies in a row")
                        + " within " + within.toMillis() + " ms; the last failure: " + lastFailure);
    }

    private boolean isRight() {
        try {
            if (asked.call(0, 0)) {
                return true;
            }
            lastFailure = "a wrong reply";
        } catch (CallException notYet) {
            lastFailure = notYet.toString();
        }
        return false;
    }
}
