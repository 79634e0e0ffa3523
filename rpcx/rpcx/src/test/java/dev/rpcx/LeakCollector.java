package dev.rpcx;

import io.netty.util.ResourceLeakDetector;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * Keeps the reports of Netty's leak detector. Netty creates it by the name in
 * {@code -Dio.netty.customResourceLeakDetector}.
 */
public final class LeakCollector<T> extends ResourceLeakDetector<T> {
    static final List<String> REPORTS = new CopyOnWriteArrayList<>();

    public LeakCollector(Class<?> resourceType, int samplingInterval) {
        super(resourceType, samplingInterval);
    }

    public LeakCollector(Class<?> resourceType, int samplingInterval, long maxActive) {
        super(resourceType, samplingInterval);
    }

    @Override
    protected boolean needReport() {
        return true;
    }

    @Override
    protected void reportTracedLeak(String resourceType, String records) {
        REPORTS.add(resourceType + records);
    }

    @Override
    protected void reportUntracedLeak(String resourceType) {
        REPORTS.add(resourceType);
    }
}
