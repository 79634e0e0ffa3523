package dev.parley.model;

import java.time.Instant;
import java.util.List;
import java.util.Map;

/**
 * One use of the workbench, and all that is needed to judge or repeat it.
 *
 * @param id unique in the store, such as {@code 2026-11-21T08-15-30}
 * @param command as typed
 * @param commit of the workbench, {@code unknown} outside a checkout
 * @param machine kernel, CPU, cores, governor, memory: name → value, in a stable order; beside them the brokers and
 *     databases of the run, whose names begin with {@link #BROKER} or {@link #DATABASE}
 * @param jdk of the services: vendor and version
 * @param jvmFlags of every service alike
 * @param technologies in the order asked for
 */
public record Run(
        String id,
        Instant startedAt,
        String command,
        long seed,
        String commit,
        Map<String, String> machine,
        String jdk,
        List<String> jvmFlags,
        List<Technology> technologies) {
    /** How the name of a fact begins that tells of a broker and not of the machine. */
    public static final String BROKER = "broker ";

    /** How the name of a fact begins that tells of a database and not of the machine. */
    public static final String DATABASE = "database ";

    /** True for a fact that only a run with that broker or database has. */
    public static boolean isOfBackend(String fact) {
        return fact.startsWith(BROKER) || fact.startsWith(DATABASE);
    }
}
