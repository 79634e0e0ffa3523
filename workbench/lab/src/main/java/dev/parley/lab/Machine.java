package dev.parley.lab;

import dev.parley.model.Rules;
import dev.parley.process.Packaged;
import dev.rpcx.probe.MachineFacts;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a run's record says of the machine, and of the rules by which it is measured there. */
final class Machine {
    private Machine() {}

    /** Name → value, in a stable order. */
    static Map<String, String> facts() {
        Map<String, String> facts = new LinkedHashMap<>(MachineFacts.read());
        facts.put(Rules.FACT, Integer.toString(Rules.VERSION));
        facts.put(
                "pacer of open loads",
                ShortCommand.said(List.of("chrt", "--rr", "1", "echo", "real-time"))
                                .equals("real-time")
                        ? "real-time thread"
                        : "waits for a core like any thread");
        // Every JVM reads these, on top of its own flags.
        for (String name : List.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")) {
            Optional.ofNullable(System.getenv(name)).ifPresent(options -> facts.put(name, options));
        }
        // A distribution's runtime has its classes compressed, so that a boot takes longer.
        Packaged.commit(Installations.home()).ifPresent(_ -> facts.put("runtime", "that of a distribution"));
        return facts;
    }
}
