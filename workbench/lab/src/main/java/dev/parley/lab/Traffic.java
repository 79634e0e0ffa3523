package dev.parley.lab;

import dev.parley.model.FigureRow;
import dev.parley.model.Metric;
import dev.parley.protocol.Event;
import dev.parley.protocol.ServiceEvent.Served;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;

/**
 * The requests of one trial as the load generator counted them and as each service did, from before the first was
 * sent until every one had its reply or was given up. No request is then under way but those that were given up, so
 * that the counts leave no room for more than these: a request that had a reply was answered once, and one that had
 * none was answered once or not at all.
 *
 * @param sent requests of the load generator to the first service, outside of the window too
 * @param answered those of them that had a reply, right or wrong
 * @param services the first one first
 */
record Traffic(long sent, long answered, List<Service> services) {

    /**
     * @param calls requests that it is sent for each one that the first service answers; empty where the work decides
     *     that anew each time
     * @param leftOver requests of earlier loads that were given up and may have reached it in this one
     * @param isSentOnce false behind a broker, which sends again what was not acknowledged
     */
    record Service(String name, Served served, OptionalLong calls, long leftOver, boolean isSentOnce) {}

    /** Requests that were sent in a trial, whatever became of them. */
    static long sent(List<Event.Step> steps, Event.Uncounted uncounted) {
        return uncounted.sent()
                + steps.stream().mapToLong(s -> answered(s) + s.failed()).sum();
    }

    /** Those of them that had a reply. */
    static long answered(List<Event.Step> steps, Event.Uncounted uncounted) {
        return uncounted.answered()
                + steps.stream().mapToLong(Traffic::answered).sum();
    }

    private static long answered(Event.Step step) {
        return step.replied() + step.late() + step.wrong();
    }

    /** Counts that cannot be of the same requests, a line for each service whose do not agree. */
    List<String> contradictions() {
        List<String> all = new ArrayList<>();
        Service first = services.getFirst();
        for (Service service : services) {
            if (service.calls().isEmpty()) {
                continue;
            }
            long calls = service.calls().getAsLong();
            long least = answered * calls;
            if (service.served().answered() < least) {
                all.add(text(
                        "impossible: %s answered %d requests, the %d replies that the load generator counted took %d",
                        service.name(), service.served().answered(), answered, least));
            }
            long most = (service.equals(first) ? sent : first.served().begun() * calls) + service.leftOver();
            if (service.isSentOnce() && service.served().begun() > most) {
                all.add(text(
                        "impossible: %s was sent %d requests, %s and %d left over from before make at most %d",
                        service.name(),
                        service.served().begun(),
                        service.equals(first)
                                ? "the " + sent + " of the load generator"
                                : calls + " for each of the " + first.served().begun() + " of " + first.name(),
                        service.leftOver(),
                        most));
            }
        }
        return all;
    }

    List<FigureRow> figures(int trialId) {
        List<FigureRow> figures = new ArrayList<>();
        figures.add(new FigureRow(trialId, Metric.REQUESTS_SENT, "generator", sent));
        figures.add(new FigureRow(trialId, Metric.REPLIES_COUNTED, "generator", answered));
        services.forEach(s -> figures.add(new FigureRow(
                trialId, Metric.REQUESTS_SERVED, s.name(), s.served().answered())));
        long allocatedBytes =
                services.stream().mapToLong(s -> s.served().allocatedBytes()).sum();
        // Some bytes are allocated for every request: a JVM that tells of none does not count them.
        if (answered > 0 && allocatedBytes > 0) {
            services.forEach(
                    s -> figures.add(allocated(trialId, s.name(), s.served().allocatedBytes())));
            figures.add(allocated(trialId, FigureRow.SYSTEM, allocatedBytes));
        }
        return figures;
    }

    private FigureRow allocated(int trialId, String subject, long bytes) {
        return new FigureRow(trialId, Metric.ALLOCATED_PER_REQUEST, subject, bytes / 1e3 / answered);
    }

    private static String text(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
