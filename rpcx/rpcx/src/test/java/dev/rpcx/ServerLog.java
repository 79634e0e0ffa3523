package dev.rpcx;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what servers log while a test does something. Nothing of it is printed. */
final class ServerLog extends Handler {
    private final List<String> lines = new CopyOnWriteArrayList<>();

    private ServerLog() {}

    static List<String> of(Runnable meanwhile) {
        Logger logger = Logger.getLogger(Server.class.getName());
        ServerLog log = new ServerLog();
        logger.addHandler(log);
        logger.setUseParentHandlers(false);
        try {
            meanwhile.run();
        } finally {
            logger.removeHandler(log);
            logger.setUseParentHandlers(true);
        }
        return log.lines;
    }

    @Override
    public void publish(LogRecord line) {
        lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
