package dev.parley.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LauncherTest {
    private static final String PATH = "/usr/local/bin:/usr/bin";

    @Test
    void itIsNamedAsItWasTyped() {
        assertThat(Launcher.name("./parley", PATH)).isEqualTo("./parley");
        assertThat(Launcher.name("parley-0.1.0-linux-x64/bin/parley", PATH))
                .isEqualTo("parley-0.1.0-linux-x64/bin/parley");
        assertThat(Launcher.name("/opt/parley/bin/parley", PATH)).isEqualTo("/opt/parley/bin/parley");
    }

    @Test
    void itsNameAloneIsEnoughWhereThePathHoldsIt() {
        assertThat(Launcher.name("/usr/local/bin/parley", PATH)).isEqualTo("parley");
        assertThat(Launcher.name("/usr/parley", PATH)).isEqualTo("/usr/parley");
        assertThat(Launcher.name("/usr/local/bin/parley", "")).isEqualTo("/usr/local/bin/parley");
    }

    @Test
    void aCommandCanBePastedIntoAShell() {
        assertThat(Launcher.command("run", "--resume", "results/one")).isEqualTo("./parley run --resume results/one");
        assertThat(Launcher.command("report", "it's here")).isEqualTo("./parley report 'it'\\''s here'");
        assertThat(Launcher.name("my tools/parley", PATH)).isEqualTo("'my tools/parley'");
    }
}
