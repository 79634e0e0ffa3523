package dev.parley.cli;

import dev.parley.backend.Backends;
import dev.parley.lab.Lab;
import dev.parley.model.BadInput;
import dev.parley.model.Launcher;
import dev.parley.process.Children;
import dev.parley.spi.Location;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine.Model.CommandSpec;

/** What every command that measures does around the lab: a folder, progress, the report, the exit code. */
final class Job {
    /** Room for a run's rows and logs: the largest seen, a whole study of 400 trials, took under a quarter of it. */
    private static final long ROOM_BYTES = 50_000_000;

    /** In UTC, in which no time of day comes twice. */
    private static final DateTimeFormatter FOLDER =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH-mm-ss").withZone(ZoneOffset.UTC);

    static final String FOR = "--for";
    static final String FOR_MEANS =
            "Begin nothing that would end later than this time from now, such as 2h or 90m. What is left then is done"
                    + " by --resume.";

    private static final Pattern TIME = Pattern.compile("([0-9]{1,4})(h|m)");

    static final String BACKEND = "--backend";
    static final String BACKEND_MEANS =
            "Use a broker or database that runs already (rabbitmq, kafka, postgres, mysql, redis) instead of starting"
                    + " one; once for each. A database must have the user parley with the password parley and a"
                    + " database parley, in which tables are made anew.";

    static final String OBSERVE = "--observe";
    static final String OBSERVE_MEANS =
            "Let each service write a line of JSON for each call. DIR/observed gets these logs, and configurations of"
                    + " Prometheus, Grafana, Filebeat, Logstash and Kibana that read them (docs/observing). Each call"
                    + " takes longer.";

    static final String OUT_MEANS =
            "Folder for the results; made if need be. Default: a new folder results/<date-time>/, in UTC.";

    /** What a run leaves in its folder. */
    static final String WRITES =
            "Writes to DIR: report.html (open it in a browser), summary.csv, details.csv and summary.json (the"
                    + " figures), targets.csv where the study has a target (the answers), results.duckdb (every row"
                    + " that was measured) and logs/. Prints the table of the figures.";

    private static final List<String> ELSEWHERE = Stream.concat(Backends.BROKERS.stream(), Backends.DATABASES.stream())
            .toList();

    private Job() {}

    /** Reads {@code rabbitmq=host:port}, each name once. */
    static Map<String, Location.Socket> backends(List<String> typed) {
        Map<String, Location.Socket> named = new LinkedHashMap<>();
        for (String backend : typed) {
            String[] sides = backend.split("=", 2);
            Optional<Location.Socket> at = sides.length < 2 ? Optional.empty() : socket(sides[1]);
            if (at.isPresent() && !ELSEWHERE.contains(sides[0])) {
                throw BadInput.oneOf(BACKEND, sides[0], ELSEWHERE);
            }
            if (at.isEmpty() || named.put(sides[0], at.get()) != null) {
                throw new BadInput(
                        BACKEND, backend, "NAME=HOST:PORT, each name once, one of " + String.join(", ", ELSEWHERE));
            }
        }
        return named;
    }

    private static Optional<Location.Socket> socket(String text) {
        try {
            return Location.parse(text) instanceof Location.Socket socket ? Optional.of(socket) : Optional.empty();
        } catch (BadInput noPlace) {
            return Optional.empty();
        }
    }

    /** When a sitting of so much time, typed as {@value #FOR} has it, is over; empty where none was typed. */
    static Optional<Instant> until(Optional<String> sitting) {
        return sitting.map(text -> {
            Matcher time = TIME.matcher(text);
            long amount = time.matches() ? Long.parseLong(time.group(1)) : 0;
            if (amount == 0) {
                throw new BadInput(FOR, text, "hours or minutes such as 2h or 90m");
            }
            return Instant.now()
                    .plus(time.group(2).equals("h") ? Duration.ofHours(amount) : Duration.ofMinutes(amount));
        });
    }

    /** What the lab is to do. */
    @FunctionalInterface
    interface Measurement {
        Lab.Ending carryOut() throws InterruptedException;
    }

    /** Measures, writes the report and says where it is. */
    static int carryOut(Measurement measurement, Path folder, Progress progress) {
        return carryOut(measurement, folder, progress, Optional.empty());
    }

    /**
     * Measures, writes the report and says where it is; or, after Ctrl-C, how to go on.
     *
     * @param sitting time that was typed for it; what is left then is told
     */
    static int carryOut(Measurement measurement, Path folder, Progress progress, Optional<String> sitting) {
        // Ctrl-C waits for the message that says where the finished trials are
        try (Children.Hold _ = Children.hold()) {
            Lab.Ending ending;
            try {
                ending = measurement.carryOut();
            } catch (InterruptedException e) {
                progress.end();
                System.err.println("parley: interrupted; finished trials are in " + folder.resolve(Lab.STORE_FILE)
                        + ": " + Launcher.command("report", folder.toString()) + " shows them, "
                        + resuming("run", folder, sitting) + " goes on");
                return 1;
            }
            progress.end();
            Path report = Results.write(folder, System.out);
            ending.firstFailure()
                    .ifPresent(why -> System.err.println("parley: " + ending.failed() + " of "
                            + (ending.failed() + ending.finished()) + " trials failed; the first: " + why));
            if (ending.left() > 0) {
                System.out.println(
                        "left: " + ending.left() + " trials; " + resuming("run", folder, sitting) + " goes on");
            }
            System.out.println("took " + took());
            System.out.println("report: " + report);
            return ending.failed() > 0 ? 1 : 0;
        }
    }

    /**
     * The command that does the rest of what is in a folder.
     *
     * @param sitting time that was typed for this sitting, and is meant for the next one too
     */
    static String resuming(String command, Path folder, Optional<String> sitting) {
        List<String> words = new ArrayList<>(List.of(command, "--resume", folder.toString()));
        sitting.ifPresent(time -> words.addAll(List.of(FOR, time)));
        return Launcher.command(words);
    }

    /** Since this JVM began: with all that a person waited for, but for what built the workbench before. */
    private static String took() {
        long beganMs = ManagementFactory.getRuntimeMXBean().getStartTime();
        return Progress.exact(Duration.ofMillis(System.currentTimeMillis() - beganMs));
    }

    /** A folder for a new run, made if need be. */
    static Path folder(Optional<Path> out) {
        Path folder = out.orElse(Path.of("results"));
        if (out.isPresent() && Files.exists(folder.resolve(Lab.STORE_FILE))) {
            throw new BadInput("--out", folder, "a folder without a run in it");
        }
        boolean isNew = out.isEmpty() || !Files.exists(folder);
        try {
            Files.createDirectories(folder);
            if (out.isEmpty()) {
                folder = dated(folder, Instant.now());
            }
            Files.delete(Files.createTempFile(folder, "writable", ""));
            long free = Files.getFileStore(folder).getUsableSpace();
            if (free < ROOM_BYTES) {
                if (isNew) {
                    Files.delete(folder);
                }
                throw new BadInput(
                        "--out",
                        folder + " with " + free / 1_000_000 + " MB free",
                        "at least " + ROOM_BYTES / 1_000_000 + " MB");
            }
        } catch (IOException e) {
            String why = e instanceof FileSystemException f && f.getReason() != null
                    ? f.getReason()
                    : e.getClass().getSimpleName();
            throw new BadInput("--out", folder + ", where nothing can be written: " + why, "a folder for the results");
        }
        return folder;
    }

    /** Makes a folder that no other run has: one that begins in the same second gets a number behind the time. */
    static Path dated(Path parent, Instant now) throws IOException {
        String name = FOLDER.format(now);
        for (int number = 2; ; number++) {
            Path folder = parent.resolve(name);
            try {
                return Files.createDirectory(folder);
            } catch (FileAlreadyExistsException taken) {
                name = FOLDER.format(now) + "-" + number;
            }
        }
    }

    /**
     * Refuses what could not be written once all is measured. Makes nothing, so that nothing is left over of what is
     * not begun.
     */
    static void checkPlace(String option, Path place, boolean isFolder) {
        Path there = place.toAbsolutePath().normalize();
        boolean isNew = !Files.exists(there);
        while (!Files.exists(there) && there.getParent() != null) {
            there = there.getParent();
        }
        if (isNew ? !Files.isDirectory(there) : isFolder != Files.isDirectory(there)) {
            throw new BadInput(
                    option,
                    isNew ? place + ", below " + there + ", which is no folder" : place,
                    isNew || isFolder ? "a folder, or none yet" : "a file, or none yet");
        }
        // a file is written beside its old text, and then takes its place
        Path holder = Files.isDirectory(there) ? there : there.resolveSibling("");
        if (!Files.isWritable(holder)) {
            throw new BadInput(option, place + ", and " + holder + " cannot be written", "a place that can be written");
        }
    }

    /** The folder of a stored run. */
    static Path stored(String place, Path folder) {
        if (!Files.isRegularFile(folder.resolve(Lab.STORE_FILE))) {
            throw new BadInput(place, folder, "a folder with " + Lab.STORE_FILE + " in it");
        }
        return folder;
    }

    /** What was typed, in a form that a shell reads again. */
    static String command(CommandSpec spec) {
        return Launcher.command(spec.commandLine().getParent().getParseResult().originalArgs());
    }
}
