package dev.parley.observed;

import dev.parley.spi.CallLog;
import java.nio.file.Path;

/** Found with {@link java.util.ServiceLoader}. */
public final class EcsCallLogs implements CallLog.Provider {
    @Override
    public CallLog open(Path file, String service, String technology) {
        return new EcsCallLog(file, service, technology);
    }
}
