package dev.rpcx.cli;

import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** Says which version this is, as the build has written it into {@code version.properties}. */
final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() throws IOException {
        Properties built = new Properties();
        try (InputStream in = Version.class.getResourceAsStream("version.properties")) {
            built.load(Objects.requireNonNull(in));
        }
        return new String[] {"rpcx " + built.getProperty("version")};
    }
}
