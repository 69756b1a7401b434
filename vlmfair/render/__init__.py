"""From numbers to what is read: tables, figures and the report page."""
