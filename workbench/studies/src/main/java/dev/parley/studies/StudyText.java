package dev.parley.studies;

import dev.parley.model.Limits;
import dev.parley.model.Quantity;
import dev.parley.model.Study;
import dev.parley.model.Target;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A study written out in full, defaults and all, in one form only: equal studies have equal texts, and reading a text gives its study
 * again. It is kept with every run, so that a run can be resumed or repeated without the file it came from.
 */
public final class StudyText {
    private StudyText() {}

    public static String of(Study study) {
        StringBuilder text = new StringBuilder();
        line(text, "study", quoted(study.title()));
        line(text, "technologies", list(study.technologies()));
        line(text, "topologies", list(study.topologies()));
        line(text, "work", study.work());
        Study.Offering first = study.offerings().getFirst();
        line(text, "messages", list(first.messages()));
        text.append("loads:\n");
        first.loads()
                .forEach(load ->
                        text.append("  - ").append(quoted(load.toString())).append('\n'));
        if (study.offerings().size() > 1) {
            text.append("more:\n");
            study.offerings().stream().skip(1).forEach(offering -> {
                line(text, "  - messages", list(offering.messages()));
                line(text, "    loads", list(offering.loads()));
            });
        }
        Study.Effort effort = study.effort();
        if (!effort.name().equals("own")) {
            line(text, "effort", effort.name());
        }
        line(text, "restarts", study.restarts());
        line(
                text,
                "rehearsal",
                effort.rehearsalLeast().isZero()
                        ? Quantity.text(effort.rehearsal())
                        : "{least: " + Quantity.text(effort.rehearsalLeast()) + ", most: "
                                + Quantity.text(effort.rehearsal()) + "}");
        line(
                text,
                "warm-up",
                "{least: " + Quantity.text(effort.warmUpLeast()) + ", most: " + Quantity.text(effort.warmUpMost())
                        + "}");
        line(
                text,
                "window",
                effort.openRequests() == 0
                        ? Quantity.text(effort.window())
                        : "{least: " + Quantity.text(effort.window()) + ", requests: " + effort.openRequests() + "}");
        line(text, "success-within", Quantity.text(study.limit()));
        if (!study.callLimit().equals(Study.defaultCallLimit(study.limit()))) {
            line(text, "call-limit", Quantity.text(study.callLimit()));
        }
        line(text, "seed", study.seed());
        if (study.isAlone()) {
            line(text, "alone", true);
        }
        study.target()
                .ifPresent(target -> line(
                        text,
                        "target",
                        target.byKey().entrySet().stream()
                                .map(asked -> asked.getKey() + ": " + asked.getValue())
                                .collect(Collectors.joining(", ", "{", "}"))));
        if (!study.limits().isNone()) {
            limits(text, study.limits());
        }
        return text.toString();
    }

    /** @throws BadStudy if the text was not written here, or names a technology that is no longer there */
    public static Study read(String text, List<String> technologies) {
        return StudyFile.parse("stored study", text, technologies);
    }

    /** The title in a text; its technologies and its work need not be there. */
    public static Optional<String> title(String text) {
        return StudyFile.title("stored study", text);
    }

    /** The target of a study that was written here; empty where it has none. Its technologies need not be there. */
    public static Optional<Target> target(String text) {
        return StudyFile.target("stored study", text);
    }

    /** SHA-256 of the text, in hexadecimal: tells runs of the same study from others. */
    public static String digest(Study study) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(of(study).getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(hash);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    private static void limits(StringBuilder text, Limits limits) {
        text.append("limits:\n");
        limits.each().cores().ifPresent(c -> line(text, "  cores", c));
        limits.each().memoryBytes().ifPresent(m -> line(text, "  memory", Quantity.textOfBytes(m)));
        if (!limits.services().isEmpty()) {
            text.append("  services:\n");
            limits.services().forEach((name, share) -> line(text, "    " + name, share(share)));
        }
        if (!limits.hosts().isEmpty()) {
            text.append("  hosts:\n");
            for (Map.Entry<String, List<String>> host : limits.hosts().entrySet()) {
                line(text, "    " + host.getKey(), list(host.getValue()));
            }
        }
        limits.bandwidth().ifPresent(b -> line(text, "  bandwidth", Quantity.textOfBits(b.bitsPerSecond())));
        limits.proxy().ifPresent(proxy -> {
            text.append("  proxy:\n");
            line(text, "    delay", Quantity.text(proxy.delay()));
            proxy.bytesPerSecond().ifPresent(b -> line(text, "    bytes-per-second", b));
            proxy.cutEvery().ifPresent(c -> line(text, "    cut-every", Quantity.text(c)));
        });
    }

    private static String share(Limits.Share share) {
        StringBuilder text = new StringBuilder("{");
        share.cores().ifPresent(c -> text.append("cores: ").append(c));
        share.memoryBytes()
                .ifPresent(m -> text.append(text.length() > 1 ? ", " : "")
                        .append("memory: ")
                        .append(Quantity.textOfBytes(m)));
        return text.append('}').toString();
    }

    private static void line(StringBuilder text, String key, Object value) {
        text.append(key).append(": ").append(value).append('\n');
    }

    private static String list(List<?> values) {
        return values.stream().map(v -> quoted(v.toString())).collect(Collectors.joining(", ", "[", "]"));
    }

    /** Quoted wherever a colon, comma or the like could be taken for YAML. */
    private static String quoted(String value) {
        return value.matches("[a-z][a-z0-9-]*")
                ? value
                : "\"" + value.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
