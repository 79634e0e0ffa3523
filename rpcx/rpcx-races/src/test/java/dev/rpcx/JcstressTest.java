package dev.rpcx;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.internal.call.CreditRace;
import dev.rpcx.internal.call.SerialRace;
import dev.rpcx.internal.client.SlotsRace;
import dev.rpcx.internal.io.WriteTurnRace;
import dev.rpcx.internal.ledger.LedgerRace;
import dev.rpcx.internal.server.AdmissionRace;
import dev.rpcx.internal.wire.OutboxRace;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Tries the races of this module with JCStress, in processes of its own. The races are compiled in each of the ways
 * that a JVM has, and two threads meet in them again and again. The test runs only in the long form,
 * {@code -Drpcx.long=true}, or for as long as {@code -Drpcx.jcstress="-m tough"} says.
 */
@Timeout(7200)
class JcstressTest {
    private static final Path FOLDER = Path.of("target", "jcstress");

    /** The file of figures that {@code rpcx/reliability} reads and records. */
    private static final Path FIGURES = Path.of("target", "reliability.txt");

    private static final List<Class<?>> RACES = List.of(
            AdmissionRace.class,
            CreditRace.class,
            LedgerRace.class,
            OutboxRace.class,
            SerialRace.class,
            SlotsRace.class,
            WriteTurnRace.class);

    private static final Pattern TRIED = Pattern.compile("\\[(\\w+)] dev\\.rpcx\\.(?:\\w+\\.)*([A-Z]\\w*)");
    private static final Pattern SAMPLES = Pattern.compile(" +([0-9,]+) +[<>]?[0-9.]+% +(\\w+)");

    private static final String ALL_TOGETHER = "Results across all configurations";

    /** This test takes all processors for minutes. */
    @Test
    void nothingForbiddenHappens() throws Exception {
        // the figures of an earlier run do not belong to this one
        Files.deleteIfExists(FIGURES);
        boolean isLong = Boolean.getBoolean("rpcx.long");
        String extent = System.getProperty("rpcx.jcstress", isLong ? "-m quick" : "");
        Assumptions.assumeFalse(
                extent.isEmpty(),
                "JCStress takes all processors for minutes: rpcx/reliability, or -Drpcx.jcstress=\"-m sanity\"");
        Files.createDirectories(FOLDER);
        Path log = FOLDER.resolve("log");
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                "org.openjdk.jcstress.Main",
                "-v",
                "-t",
                "dev.rpcx",
                "-r",
                "."));
        command.addAll(List.of(extent.split(" ")));
        Process jcstress = new ProcessBuilder(command)
                .directory(FOLDER.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        int exit;
        try {
            exit = jcstress.waitFor();
        } finally {
            jcstress.destroyForcibly();
        }
        String said = Files.readString(log);
        assertThat(exit).as(said).isZero();
        Set<String> tried = new TreeSet<>();
        Matcher each = TRIED.matcher(said);
        while (each.find()) {
            assertThat(each.group(1)).as(each.group(2)).isEqualTo("OK");
            tried.add(each.group(2));
        }
        assertThat(tried)
                .as("a machine of one processor runs none")
                .hasSameSizeAs(Runtime.getRuntime().availableProcessors() < 2 ? Set.of() : RACES);
        long samples = 0;
        if (tried.isEmpty()) {
            return;
        }
        assertThat(said).contains(ALL_TOGETHER);
        Matcher outcome = SAMPLES.matcher(said.substring(said.indexOf(ALL_TOGETHER)));
        while (outcome.find()) {
            assertThat(outcome.group(2)).isEqualTo("Acceptable");
            samples += Long.parseLong(outcome.group(1).replace(",", ""));
        }
        assertThat(samples).isPositive();
        if (isLong) {
            Files.writeString(
                    FIGURES,
                    "2\t" + samples + " meetings of two threads in " + tried.size()
                            + " races under JCStress, in each way of compiling: nothing forbidden\n",
                    StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
        }
    }
}
